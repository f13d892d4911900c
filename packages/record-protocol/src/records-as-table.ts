// One file, since every request for a row, also one for its queue or for a heartbeat, shares the answers that are in flight.
import { NoAnswerError } from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { Heartbeats } from './heartbeats.ts';
import type { LockRow } from './lock-row.ts';
import { type LookoutScope, QueueLookout } from './queue-lookout.ts';
import type { RecordStore, RecordVersion, RecordWrite, StoredRecord } from './record-store.ts';
import type {
  LockTable,
  RowConflict,
  RowTake,
  RowTaken,
  RowWrite,
  RowWritten,
  Snapshot,
  TablePace,
} from './lock-table.ts';
import { presentMoment } from './moment.ts';
import { OwnHeartbeat } from './own-heartbeat.ts';
import {
  earlierSending,
  encodeRecord,
  type HoldTimes,
  nameIn,
  type RecordSource,
  writeOf,
  WRITES_KEPT,
} from './record-value.ts';
import { type NamedRecord, RecordRows } from './record-rows.ts';
import { micros } from './row-decision.ts';
import { Sightings } from './sightings.ts';
import { StoreClock } from './store-clock.ts';
import { StoreRequests } from './store-requests.ts';
import type { TimeLimit } from './time-limit.ts';
import { TimeProbe } from './time-probe.ts';

/** The bytes of a record besides its state: its name, each byte of which may take six in JSON, and numbers. */
const HEAD_BYTES = 3_400;
const KEYS_AT_ONCE = 100;
const WRITES_AT_ONCE = 32;
const LIST_PAGE = 64;
const LONGEST_WAITER_TTL_MS = 12_000;
/** A clock that is wrong by centuries must not use up the tokens, which are whole numbers below 2 ** 53. */
const LAST_MICROS = 2 ** 52;
/**
 * An idle record is deleted after a day by the store's time. One with a token that is further ahead of that time stays: the tokens of a
 * record that is made anew could be lower.
 */
const AHEAD_MICROS = 12 * 3_600_000_000;

/**
 * The table of a {@link RecordStore}. Its clock is the monotonic clock of this process, in microseconds: a hold of another process
 * ends when it was seen unchanged for its ttl ({@link Sightings}), or when the store's clock says so, whichever comes first.
 *
 * One file, since each method of {@link LockTable} is one or two requests to the store and what this process learns of their answers.
 */
export class RecordsAsTable implements LockTable {
  readonly name: string;
  readonly pace: TablePace;
  readonly isClientClosed?: (() => boolean) | undefined;
  readonly releaseBudgetMs = 5_000;
  readonly namesAtOnce = KEYS_AT_ONCE;
  readonly rowsAtOnce = 200;
  readonly canCreate = true;
  readonly longestWaiterTtlMs: number;
  readonly unusedKept = 1_000;
  readonly list?: LockTable['list'];
  readonly prepare?: LockTable['prepare'];
  readonly watch?: LockTable['watch'];
  readonly #store: RecordStore;
  readonly #prefix: string;
  /** The wall clock when the monotonic clock was 0, read once. */
  readonly #origin = Math.min(Date.now() * 1_000, LAST_MICROS) - performance.now() * 1_000;
  readonly #clock: StoreClock;
  readonly #probe: TimeProbe;
  readonly #sightings = new Sightings();
  readonly #heartbeats: Heartbeats;
  readonly #lookout: QueueLookout;
  readonly #own = new OwnHeartbeat({
    write: (write, limit) => this.#requests.write(write, limit),
    present: (key, told, limit) => this.#present(key, told, limit),
  });
  readonly #requests: StoreRequests;
  readonly #rows: RecordRows;

  constructor(store: RecordStore, prefix: string) {
    const { minPollMs = 2, waiterTtlMs = 3_000 } = store.pace ?? {};
    this.name = store.name;
    this.pace = {
      ...{ minPollMs, waiterTtlMs, pollsPresentTurn: false },
      get maxPollMs() {
        return store.pace?.maxPollMs ?? 800;
      },
    };
    this.longestWaiterTtlMs = Math.min(4 * waiterTtlMs, Math.max(waiterTtlMs, LONGEST_WAITER_TTL_MS));
    this.isClientClosed = store.isClientClosed?.bind(store);
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = new StoreClock(store.clock, store.name);
    this.#requests = new StoreRequests(store, this.#clock);
    this.#probe = new TimeProbe(store, this.#requests, this.#clock);
    this.#heartbeats = new Heartbeats(waiterTtlMs, this.#clock);
    this.#lookout = new QueueLookout(this.#heartbeats, waiterTtlMs);
    this.#rows = new RecordRows({
      sightings: this.#sightings,
      clock: this.#clock,
      probe: this.#probe,
      lookout: this.#lookout,
      now: () => this.now(),
      keyOf: (name) => this.#key(name),
    });
    if (store.list !== undefined) this.list = (names, limit) => this.#list(names, limit);
    if (store.prepare !== undefined) this.prepare = store.prepare.bind(store);
    if (store.watch !== undefined)
      this.watch = (name, changed, client) =>
        (store.watch as NonNullable<RecordStore['watch']>)(
          this.#key(name),
          (change) => changed(change && { wakes: change.wakes, found: this.#pushed(name, change.record) }),
          client,
        );
  }

  /** A store may learn its limit from its server. */
  get maxStateBytes(): number {
    return this.#store.maxValueBytes - HEAD_BYTES;
  }

  get tellsWhom(): boolean {
    return this.#store.tellsWhom ?? false;
  }

  get stateBound(): string {
    return `${this.#store.maxValueBytes} bytes in this store`;
  }

  now(): number {
    return Math.floor(this.#origin + performance.now() * 1_000);
  }

  /**
   * The latest of three clocks: a record that the store has deleted had a token near to the store's time; one that the store lost in a
   * failover had a token by the clock of a process. The monotonic clock stands still while the machine sleeps.
   */
  tokenFloor(): number {
    const wall = Math.min(Date.now() * 1_000, LAST_MICROS);
    const told = Math.min(this.#clock.lowerAt(performance.now()) ?? 0, LAST_MICROS);
    const floor = this.#store.tokenFloor?.() ?? 0;
    return Math.floor(Math.max(this.now(), wall, told, Math.min(floor, LAST_MICROS)));
  }

  async snapshot(names: readonly string[], known: readonly number[], limit: TimeLimit): Promise<Snapshot> {
    const [askedAt, now] = [performance.now(), this.now()];
    const records = await this.#read(
      names.map((name) => this.#key(name)),
      limit,
    );
    // A read that finds nothing may tell no time, and what is decided on it may be a grant.
    if (this.#probe.canAsk && this.#probe.isWanted) await this.#probe.ask(limit);
    const rows = new Map<string, LockRow | undefined>();
    const versions = new Set(known);
    const changed: NamedRecord[] = [];
    for (const [index, name] of names.entries()) {
      const record = records[index];
      if (record === undefined) this.#lookout.note(name, undefined);
      else if (versions.has(writeOf(record))) rows.set(name, undefined);
      else changed.push([name, record]);
    }
    for (const [name, row] of await this.#rows.of(changed, limit)) rows.set(name, row);
    await this.#lookForSilence(names, limit, 'near');
    return { now, askedAt, alive: this.#heartbeats, rows };
  }

  async take({ request, version }: RowTake, limit: TimeLimit, isWanted: () => boolean): Promise<RowTaken> {
    const { resource: name, acquisitionId: id, mode, label } = request;
    if (!isWanted()) return { status: 'conflict' };
    // Without the store's time neither an end of the hold that all can read can be written, nor a token that rises for sure.
    if (this.#probe.isWanted) {
      if (!this.#probe.canAsk) {
        const found = await this.snapshot([name], [], limit);
        this.#probe.wasRead();
        return { status: 'conflict', found };
      }
      await this.#probe.ask(limit);
      if (!isWanted()) return { status: 'conflict' };
    }
    const token = this.tokenFloor() + 1;
    const span = micros(request.ttlMs);
    const hold = { id, mode, label, token, since: undefined, until: undefined, span, stolen: false };
    const decided = { token, holds: [hold], waiters: [] };
    const outcome = await this.#swap(name, decided, version, limit, { wakes: [], isPatient: false });
    if (outcome.status === 'conflict') return outcome;
    const { at, source } = outcome;
    const row: LockRow = {
      version,
      token,
      holds: [{ ...hold, since: at, until: at + span, span: undefined }],
      waiters: [],
      source,
    };
    return { status: 'taken', row, token, at };
  }

  write(write: RowWrite, limit: TimeLimit): Promise<RowWritten | RowConflict> {
    const { name, decision, version, isPatient = false } = write;
    return this.#swap(name, decision, version, limit, { wakes: decision.wakes, isPatient });
  }

  isOlder(row: LockRow, known: LockRow): boolean {
    return (known.source as RecordSource | undefined)?.writes.includes(row.version) ?? false;
  }

  refineEnds(row: LockRow): void {
    this.#rows.refineEnds(row);
  }

  async writeMany(
    writes: readonly RowWrite[],
    limit: TimeLimit,
  ): Promise<readonly (RowWritten | undefined)[]> {
    const outcomes: (RowWritten | undefined)[] = [];
    for (let start = 0; start < writes.length; start += WRITES_AT_ONCE) {
      const part = writes.slice(start, start + WRITES_AT_ONCE).map((write) => this.write(write, limit));
      const settled = await Promise.allSettled(part);
      const [first] = settled;
      if (settled.every(({ status }) => status === 'rejected')) throw (first as PromiseRejectedResult).reason;
      for (const each of settled)
        outcomes.push(
          each.status === 'fulfilled' && each.value.status === 'written' ? each.value : undefined,
        );
    }
    return outcomes;
  }

  async beat(client: string, limit: TimeLimit, lives: number): Promise<void> {
    this.#lookout.client = client;
    // The first heartbeat may come before the store's time; others then see by its silence that it is over.
    const end = this.#clock.isKnown ? this.#clock.endOf(micros(lives)) : undefined;
    const unusual = lives === this.pace.waiterTtlMs ? undefined : lives;
    await this.#own.beat({ key: this.#clientKey(client), client, end, lives: unusual }, limit);
  }

  async leave(client: string, limit: TimeLimit): Promise<void> {
    await this.#own.end(this.#clientKey(client), limit);
  }

  async ping(limit: TimeLimit): Promise<void> {
    await this.#read([this.#clientKey('none')], limit);
  }

  isRetryable(error: unknown): boolean {
    return error instanceof NoAnswerError || this.#store.isRetryable(error);
  }

  isBroken(error: unknown): boolean {
    return !(error instanceof NoAnswerError) && this.#store.isRetryable(error);
  }

  connectionError(): unknown {
    return this.#store.connectionError?.();
  }

  async close(): Promise<void> {
    try {
      await this.#store.close();
    } finally {
      this.#requests.abort();
    }
  }

  /** The record that a push has. */
  #pushed(name: string, record: StoredRecord | undefined): Snapshot | undefined {
    if (record === undefined) return undefined;
    const [askedAt, now] = [performance.now(), this.now()];
    return {
      now,
      askedAt,
      alive: this.#heartbeats,
      rows: new Map([[name, this.#rows.ofOne([name, record])]]),
    };
  }

  /** Compares and swaps the record of a resource. */
  async #swap(
    name: string,
    decided: Pick<LockRow, 'token' | 'holds' | 'waiters' | 'source'>,
    version: number,
    limit: TimeLimit,
    { wakes, isPatient }: { readonly wakes: readonly string[]; readonly isPatient: boolean },
  ): Promise<RowWritten | RowConflict> {
    const source = decided.source as RecordSource | undefined;
    const times = this.#timesOf(decided.holds, version, source);
    const head = { write: version, token: decided.token, at: this.now(), name };
    const write: RecordWrite = {
      key: this.#key(name),
      value: encodeRecord(head, source?.writes ?? [], decided, times),
      ifVersion: source?.storeVersion,
      isIdle: decided.holds.length + decided.waiters.length === 0 && this.#risesWithout(decided.token),
      ...(wakes.length > 0 && { wakes }),
      ...heldUntil(times),
    };
    const askedAt = performance.now();
    const now = this.now();
    this.#sightings.sends(version, presentMoment());
    const written = await this.#requests.write(write, limit);
    this.#probe.keepNew();
    const writes = [version, ...(source?.writes ?? [])].slice(0, WRITES_KEPT);
    const writtenAs = (storeVersion: RecordVersion): RowWritten =>
      this.#written(name, { storeVersion, times, writes }, now);
    if (written.status === 'written') return writtenAs(written.version);
    if (isPatient && written.present === undefined) return { status: 'conflict' };
    const present = await this.#present(write.key, written.present, limit);
    // A client that repeats a request by itself may find that its own write was first.
    if (present !== undefined && writeOf(present) === version) return writtenAs(present.version);
    const conflicting = present === undefined ? [] : [[name, present] as const];
    const rows = await this.#rows.of(conflicting, limit);
    await this.#lookForSilence([name], limit, 'near');
    const found = { now, askedAt, alive: this.#heartbeats, rows };
    return {
      status: 'conflict',
      found,
      earlier: earlierSending(version, source, rows.get(name)?.source as RecordSource),
    };
  }

  /** Whether tokens rise above this one also where the record is deleted in a day. */
  #risesWithout(token: number): boolean {
    const told = this.#store.tokenFloor?.() ?? this.#clock.lowerAt(performance.now());
    return told !== undefined && token <= told + AHEAD_MICROS;
  }

  #written(name: string, source: RecordSource, at: number): RowWritten {
    const version = source.writes[0] as number;
    this.#sightings.see(name, source.times, at);
    this.#sightings.answered(version);
    return { status: 'written', at, source };
  }

  /** The times of all holds in a row that is to be written: of those that this write grants or renews, and of the others. */
  #timesOf(
    holds: readonly HoldRecord[],
    mark: number,
    source: RecordSource | undefined,
  ): ReadonlyMap<string, HoldTimes> {
    return new Map(
      holds.map(({ id, span }) => {
        const kept = source?.times.get(id);
        if (span === undefined && kept !== undefined) return [id, kept];
        return [id, { mark, span: span ?? 0, end: this.#clock.endOf(span ?? 0) }];
      }),
    );
  }

  /** The rows of records that were just read, by name. */
  async lookAt(name: string, scope: LookoutScope, limit: TimeLimit): Promise<void> {
    await this.#lookForSilence([name], limit, scope);
  }

  /** Reads the heartbeats that matter of the clients that wait for these names. */
  async #lookForSilence(names: readonly string[], limit: TimeLimit, scope: LookoutScope): Promise<void> {
    const asked = new Set<string>();
    for (;;) {
      // Behind those that turn out to be dead come others. An answer may be old enough when it comes for another question.
      const wanted = this.#lookout.dueOf(names, scope).filter((client) => !asked.has(client));
      const due = wanted.slice(0, KEYS_AT_ONCE);
      if (due.length === 0) return;
      for (const client of due) asked.add(client);
      const keys = due.map((client) => this.#clientKey(client));
      const askedAt = performance.now();
      const records = await this.#read(keys, limit);
      for (const [index, client] of due.entries()) this.#heartbeats.see(client, records[index], askedAt);
    }
  }

  async *#list(prefix: string, limit: TimeLimit): AsyncGenerator<Snapshot> {
    const list = this.#store.list as NonNullable<RecordStore['list']>;
    const listed = list.call(this.#store, this.#key(prefix), this.#requests.limitOf(limit));
    let page: StoredRecord[] = [];
    for await (const record of listed) {
      page.push(record);
      if (page.length === LIST_PAGE) yield await this.#snapshotOf(page.splice(0), limit);
    }
    if (page.length > 0) yield await this.#snapshotOf(page, limit);
  }

  async #snapshotOf(records: readonly StoredRecord[], limit: TimeLimit): Promise<Snapshot> {
    const [askedAt, now] = [performance.now(), this.now()];
    const named = records.flatMap((record) => {
      const name = nameIn(record);
      return name === undefined ? [] : [[name, record] as const];
    });
    const rows = await this.#rows.of(named, limit);
    await this.#lookForSilence([...rows.keys()], limit, 'next');
    return { now, askedAt, alive: this.#heartbeats, rows };
  }

  /** The record that a refused write has met: as the store told, or as it is read now. */
  async #present(
    key: string,
    told: StoredRecord | 'absent' | undefined,
    limit: TimeLimit,
  ): Promise<StoredRecord | undefined> {
    if (told === 'absent') return undefined;
    if (told !== undefined) return told;
    const [present] = await this.#read([key], limit);
    return present;
  }

  async #read(keys: readonly string[], limit: TimeLimit): Promise<readonly (StoredRecord | undefined)[]> {
    const { records } = await this.#requests.read(keys, limit);
    return records;
  }

  #key(name: string): string {
    return `${this.#prefix}lock/${name}`;
  }

  #clientKey(client: string): string {
    return `${this.#prefix}client/${client}`;
  }
}

/** When the last of these holds ends by the store's clock. */
function heldUntil(times: ReadonlyMap<string, HoldTimes>): Pick<RecordWrite, 'heldUntilMs'> {
  const ends = [...times.values()].flatMap(({ end }) => end ?? []);
  return ends.length === 0 ? {} : { heldUntilMs: Math.max(...ends) / 1_000 };
}
