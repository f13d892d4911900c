import { createHash } from 'node:crypto';
import type {
  RecordChange,
  RecordsRead,
  RecordWrite,
  RecordWritten,
  StoredRecord,
} from '@locks/record-protocol';
import type { World } from '../kernel/world.ts';
import { isAskedFor, type RecordPlan } from './record-plan.ts';
import { type MakeVersion, VersionedRecords } from './versioned-records.ts';

/** The server answers with an error: it may have carried the request out. */
export class ServerFailure extends Error {
  override readonly name = 'ServerFailure';
}

/** Somebody who wants to be told of changes. */
export interface Watcher {
  readonly key: string;
  readonly told: (change?: RecordChange) => void;
}

export interface RecordServerOptions {
  readonly plan: RecordPlan;
  /** How much faster than true time its clocks run. */
  readonly drift: number;
  /** True time after which it reads nothing stale and fails no more. */
  readonly faultsEndAt: number;
  /** Called after each write that took place. */
  readonly written: (key: string) => void;
}

const VERSIONS: Readonly<Record<RecordPlan['versions'], MakeVersion>> = {
  number: (count) => count,
  string: (count) => `"${count}"`,
  bigint: (count) => BigInt(count),
  value: (_, value) => createHash('md5').update(value).digest('hex').slice(0, 12),
};
const TWICE_PART = 0.2;

/** The servers of a store of records, and what is peculiar to them. All requests are carried out here, one after another. */
export class RecordServer {
  readonly #world: World;
  readonly #options: RecordServerOptions;
  readonly #records: VersionedRecords;
  readonly #watchers = new Set<Watcher>();
  /** When each record was written last, if it is not in use since. */
  readonly #idleSince = new Map<string, number>();
  #refusesUntil = 0;
  #readOnlyUntil = 0;

  constructor(world: World, options: RecordServerOptions) {
    this.#world = world;
    this.#options = options;
    this.#records = new VersionedRecords(() => world.now, VERSIONS[options.plan.versions]);
  }

  /** The present state of a record, for checks. */
  present(key: string): StoredRecord | undefined {
    return this.#records.read(key);
  }

  read(keys: readonly string[]): RecordsRead {
    for (const key of keys) this.#deleteIdle(key);
    for (const key of keys) this.#tellInVain(key);
    return { records: keys.map((key) => this.#read(key)), ...this.#time(true) };
  }

  write(write: RecordWrite): RecordWritten {
    const { failed, conflictsTell } = this.#options.plan;
    const { now, random } = this.#world;
    this.#deleteIdle(write.key);
    if (now < this.#readOnlyUntil) throw new ServerFailure('the store takes no writes');
    const fails =
      (this.#isFaulty && random.chance(failed)) || (now < this.#refusesUntil && random.chance(0.5));
    if (fails && random.chance(0.5)) throw new ServerFailure('the request met another: try again');
    const done = this.#records.write(write);
    if (done !== undefined) {
      this.#idleSince.set(write.key, write.isIdle ? now : Infinity);
      this.#options.written(write.key);
      this.#tell(write);
    } else this.#tellInVain(write.key);
    if (fails) throw new ServerFailure('internal error');
    const time = this.#time(false);
    if (done !== undefined) return { status: 'written', ...done, ...time };
    if (!conflictsTell) return { status: 'conflict', ...time };
    return { status: 'conflict', present: this.#records.read(write.key) ?? 'absent', ...time };
  }

  list(prefix: string): StoredRecord[] {
    const keys = this.#records.keys().filter((key) => key.startsWith(prefix));
    return keys.flatMap((key) => this.#records.read(key) ?? []);
  }

  watch(watcher: Watcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  /** Half of the writes fail for so long. */
  refuse(ms: number): void {
    this.#refusesUntil = this.#world.now + ms;
  }

  refuseWrites(ms: number): void {
    this.#readOnlyUntil = this.#world.now + ms;
  }

  /** A server takes over that has not heard of the last writes. Returns the keys of what is lost. */
  loseSince(since: number): string[] {
    return this.#records.loseSince(since);
  }

  get #isFaulty(): boolean {
    return this.#world.now < this.#options.faultsEndAt;
  }

  #deleteIdle(key: string): void {
    const record = this.#records.read(key);
    const idleSince = this.#idleSince.get(key) ?? Infinity;
    const { deletesIdleAfterMs } = this.#options.plan;
    if (record === undefined || this.#world.now < idleSince + deletesIdleAfterMs) return;
    this.#world.countFault('deleted record');
    this.#records.write({ key, value: undefined, ifVersion: record.version, isIdle: true });
  }

  #read(key: string): StoredRecord | undefined {
    const { stale, staleMs } = this.#options.plan;
    const { now, random } = this.#world;
    if (!this.#isFaulty || !random.chance(stale)) return this.#records.read(key);
    this.#world.countFault('stale read');
    return this.#records.readAt(key, now - random.next() * staleMs);
  }

  /** The time of the server that is asked. */
  get time(): number | undefined {
    const { clock } = this.#options.plan;
    if (clock === undefined) return undefined;
    const { stepMs, skewMs } = clock;
    const { now, random } = this.#world;
    const time = 1_790_000_000_000 + now * (1 + this.#options.drift) + (random.next() - 0.5) * skewMs;
    return Math.floor(time / stepMs) * stepMs;
  }

  /** What an answer tells of the time. */
  #time(isRead: boolean): { readonly now?: number } {
    const { clock } = this.#options.plan;
    if (clock === undefined || isAskedFor(clock) || !(isRead || clock.isInWrites)) return {};
    return { now: this.time ?? 0 };
  }

  #tell({ key, wakes = [] }: RecordWrite): void {
    const { tellsWhom } = this.#options.plan;
    const record = tellsWhom === 'record' ? this.#records.read(key) : undefined;
    const change = tellsWhom === 'nothing' ? undefined : { wakes, ...(record && { record }) };
    for (const watcher of this.#watchers) {
      if (watcher.key !== key) continue;
      watcher.told(change);
      if (this.#world.random.chance(TWICE_PART)) watcher.told(change);
    }
  }

  #tellInVain(key: string): void {
    const { vainPushes } = this.#options.plan;
    if (this.#watchers.size === 0 || !this.#world.random.chance(vainPushes)) return;
    for (const watcher of this.#watchers) if (watcher.key === key) watcher.told();
  }
}
