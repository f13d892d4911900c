import { NoAnswerError, withTimeLimit } from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { freshVersion } from './fresh-version.ts';
import { type Heartbeat, Heartbeats } from './heartbeats.ts';
import type { LockRow } from './lock-row.ts';
import type { RecordStore, RecordVersion, RecordWrite, RequestLimit, StoredRecord } from './record-store.ts';
import type {
  RecordTable,
  RowConflict,
  RowTake,
  RowTaken,
  RowWrite,
  RowWritten,
  Snapshot,
  TablePace,
} from './record-table.ts';
import { presentMoment } from './moment.ts';
import {
  decodeRecord,
  earlierSending,
  encodeRecord,
  type HoldTimes,
  type RecordSource,
  writeOf,
  WRITES_KEPT,
} from './record-value.ts';
import { micros } from './row-decision.ts';
import { Sightings } from './sightings.ts';
import { StoreClock } from './store-clock.ts';
import type { TimeLimit } from './time-limit.ts';

/** The bytes of a record besides its state: its name, each byte of which may take six in JSON, and numbers. */
const HEAD_BYTES = 3_400;
const KEYS_AT_ONCE = 100;
const WRITES_AT_ONCE = 32;
const LIST_PAGE = 64;
/** A late answer is waited for: a grant that comes too late is noticed, and abandoned. */
const LATE_ANSWER_MS = 1_000;
const REQUEST_LIMIT_MS = 5_000;
/** A clock that is wrong by centuries must not use up the tokens, which are whole numbers below 2 ** 53. */
const LAST_MICROS = 2 ** 52;

/**
 * The table of a {@link RecordStore}. Its clock is the monotonic clock of this process, in microseconds: a hold of another process
 * ends when it was seen unchanged for its ttl ({@link Sightings}), or when the store's clock says so, whichever comes first.
 */
export class StoreTable implements RecordTable {
  readonly name: string;
  readonly pace: TablePace;
  readonly releaseBudgetMs = 5_000;
  readonly namesAtOnce = KEYS_AT_ONCE;
  readonly rowsAtOnce = 200;
  readonly canCreate = true;
  readonly unusedKept = 1_000;
  readonly list?: RecordTable['list'];
  readonly watch?: RecordTable['watch'];
  readonly #store: RecordStore;
  readonly #prefix: string;
  /** The wall clock when the monotonic clock was 0, read once. */
  readonly #origin = Math.min(Date.now() * 1_000, LAST_MICROS) - performance.now() * 1_000;
  readonly #clock: StoreClock;
  readonly #sightings = new Sightings();
  readonly #heartbeats: Heartbeats;
  /** The clients of other processes that wait, by the names for which they do, as last read. */
  readonly #waiting = new Map<string, readonly string[]>();
  /** This process, and the version of its heartbeat, which it needs not read: it lives. */
  #client = '';
  #beat: RecordVersion | undefined;

  constructor(store: RecordStore, prefix: string) {
    const { minPollMs = 2, maxPollMs = 800, aliveMs = 3_000 } = store.pace ?? {};
    this.name = store.name;
    this.pace = { minPollMs, maxPollMs, aliveMs };
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = new StoreClock(store.clock);
    this.#heartbeats = new Heartbeats(aliveMs, this.#clock);
    if (store.list !== undefined) this.list = (names, limit) => this.#list(names, limit);
    if (store.watch !== undefined)
      this.watch = (name, changed) =>
        (store.watch as NonNullable<RecordStore['watch']>)(this.#key(name), changed);
  }

  /** A store may learn its limit from its server. */
  get maxStateBytes(): number {
    return this.#store.maxValueBytes - HEAD_BYTES;
  }

  get stateBound(): string {
    return `${this.#store.maxValueBytes} bytes in this store`;
  }

  now(): number {
    return Math.floor(this.#origin + performance.now() * 1_000);
  }

  async snapshot(names: readonly string[], known: readonly number[], limit: TimeLimit): Promise<Snapshot> {
    const [askedAt, now] = [performance.now(), this.now()];
    const records = await this.#read(
      names.map((name) => this.#key(name)),
      limit,
    );
    const rows = new Map<string, LockRow | undefined>();
    const versions = new Set(known);
    for (const [index, name] of names.entries()) {
      const record = records[index];
      if (record === undefined) this.#waiting.delete(name);
      else rows.set(name, versions.has(writeOf(record)) ? undefined : this.#rowOf(record, name));
    }
    await this.#lookForSilence(names, limit);
    return { now, askedAt, alive: this.#heartbeats, rows };
  }

  async take({ request, version }: RowTake, limit: TimeLimit, isWanted: () => boolean): Promise<RowTaken> {
    const { resource: name, acquisitionId: id, mode, label } = request;
    if (!isWanted()) return { status: 'conflict' };
    // Without the store's time an end of the hold that all can read cannot be written.
    if (this.#clock.isAwaited) return { status: 'conflict', found: await this.snapshot([name], [], limit) };
    const token = this.now() + 1;
    const span = micros(request.ttlMs);
    const hold = { id, mode, label, token, since: undefined, until: undefined, span, stolen: false };
    const decided = { token, holds: [hold], waiters: [] };
    const outcome = await this.#swap(name, decided, version, limit);
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

  write({ name, decision, version }: RowWrite, limit: TimeLimit): Promise<RowWritten | RowConflict> {
    return this.#swap(name, decision, version, limit);
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

  async beat(client: string, limit: TimeLimit): Promise<void> {
    this.#client = client;
    for (let tries = 1; ; tries += 1) {
      // A store may give a value that it has already the version that it had: two heartbeats always differ.
      const heartbeat: Heartbeat = {
        beat: freshVersion(),
        end: this.#clock.endOf(micros(this.pace.aliveMs)),
      };
      const value = Buffer.from(JSON.stringify(heartbeat));
      const write = { key: this.#clientKey(client), value, ifVersion: this.#beat, isIdle: true };
      const written = await this.#write(write, limit);
      if (written.status === 'written') {
        this.#beat = written.version;
        return;
      }
      // An earlier heartbeat got no answer, or somebody deleted it.
      if (tries === 3) throw new NoAnswerError('the heartbeat changed under each try');
      const present = await this.#present(write.key, written.present, limit);
      this.#beat = present?.version;
      if (present !== undefined && value.equals(present.value)) return;
    }
  }

  async leave(client: string, limit: TimeLimit): Promise<void> {
    const write = { key: this.#clientKey(client), value: undefined, ifVersion: this.#beat, isIdle: true };
    await this.#write(write, limit);
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

  close(): Promise<void> {
    return this.#store.close();
  }

  /** Compares and swaps the record of a resource. */
  async #swap(
    name: string,
    decided: Pick<LockRow, 'token' | 'holds' | 'waiters' | 'source'>,
    version: number,
    limit: TimeLimit,
  ): Promise<RowWritten | RowConflict> {
    const source = decided.source as RecordSource | undefined;
    const times = this.#timesOf(decided.holds, version, source);
    const head = { write: version, token: decided.token, at: this.now(), name };
    const write: RecordWrite = {
      key: this.#key(name),
      value: encodeRecord(head, source?.writes ?? [], decided, times),
      ifVersion: source?.storeVersion,
      isIdle: decided.holds.length + decided.waiters.length === 0,
    };
    const askedAt = performance.now();
    const now = this.now();
    this.#sightings.sends(version, presentMoment());
    const written = await this.#write(write, limit);
    const writes = [version, ...(source?.writes ?? [])].slice(0, WRITES_KEPT);
    const writtenAs = (storeVersion: RecordVersion): RowWritten =>
      this.#written(name, { storeVersion, times, writes }, now);
    if (written.status === 'written') return writtenAs(written.version);
    const present = await this.#present(write.key, written.present, limit);
    // A client that repeats a request by itself may find that its own write was first.
    if (present !== undefined && writeOf(present) === version) return writtenAs(present.version);
    const row = present && this.#rowOf(present, name);
    await this.#lookForSilence([name], limit);
    const found = { now, askedAt, alive: this.#heartbeats, rows: new Map(row && [[name, row]]) };
    return {
      status: 'conflict',
      found,
      earlier: earlierSending(version, source, row?.source as RecordSource),
    };
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

  /** The row of a record that was just read. */
  #rowOf(record: StoredRecord, name: string): LockRow {
    const at = performance.now();
    const seenAt = this.now();
    const { row, source } = decodeRecord(record);
    const since = this.#sightings.see(name, source.times, seenAt);
    for (const hold of row.holds as HoldRecord[]) {
      const { span, end } = source.times.get(hold.id) as HoldTimes;
      const left = end === undefined ? undefined : this.#clock.untilPassed(end, at);
      hold.until = Math.min(since(hold.id) + span, seenAt + (left ?? Infinity));
    }
    const clients = new Set(row.waiters.map(({ client }) => client));
    clients.delete(this.#client);
    if (clients.size > 0) this.#waiting.set(name, [...clients]);
    else this.#waiting.delete(name);
    return row;
  }

  /** Reads the heartbeats of the clients that wait for these names: first of all of those that are new here. */
  async #lookForSilence(names: readonly string[], limit: TimeLimit): Promise<void> {
    const clients = [...new Set(names.flatMap((name) => this.#waiting.get(name) ?? []))];
    const due = clients.filter((client) => this.#heartbeats.isDue(client));
    for (let start = 0; start < due.length; start += KEYS_AT_ONCE) {
      const part = due.slice(start, start + KEYS_AT_ONCE);
      const records = await this.#read(
        part.map((client) => this.#clientKey(client)),
        limit,
      );
      for (const [index, client] of part.entries()) this.#heartbeats.see(client, records[index]);
    }
  }

  async *#list(prefix: string, limit: TimeLimit): AsyncGenerator<Snapshot> {
    const list = this.#store.list as NonNullable<RecordStore['list']>;
    const listed = list.call(this.#store, this.#key(prefix), this.#requestLimit(limit));
    let page: StoredRecord[] = [];
    for await (const record of listed) {
      page.push(record);
      if (page.length === LIST_PAGE) yield await this.#snapshotOf(page.splice(0), limit);
    }
    if (page.length > 0) yield await this.#snapshotOf(page, limit);
  }

  async #snapshotOf(records: readonly StoredRecord[], limit: TimeLimit): Promise<Snapshot> {
    const [askedAt, now] = [performance.now(), this.now()];
    const rows = new Map<string, LockRow>();
    for (const record of records) {
      // A heartbeat is no record of a resource.
      if (writeOf(record) === 0) continue;
      const { name } = decodeRecord(record);
      rows.set(name, this.#rowOf(record, name));
    }
    await this.#lookForSilence([...rows.keys()], limit);
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
    const askedAt = presentMoment();
    const { records, now } = await this.#ask(limit, (request) => this.#store.read(keys, request));
    this.#clock.learn(now, askedAt);
    return records;
  }

  async #write(write: RecordWrite, limit: TimeLimit) {
    const askedAt = presentMoment();
    const written = await this.#ask(limit, (request) => this.#store.write(write, request));
    this.#clock.learn(written.now, askedAt);
    return written;
  }

  async #ask<T>(limit: TimeLimit, send: (request: RequestLimit) => Promise<T>): Promise<T> {
    const request = this.#requestLimit(limit);
    return withTimeLimit(send(request), request.timeoutMs, () => {
      request.abort();
      throw new NoAnswerError(request.timeoutMs, this.#store.connectionError?.());
    });
  }

  #requestLimit(limit: TimeLimit): RequestLimit & { abort(): void } {
    const timeoutMs = Math.min(Math.max(limit.deadline - limit.now(), LATE_ANSWER_MS), REQUEST_LIMIT_MS);
    let controller: AbortController | undefined;
    return {
      timeoutMs,
      get signal() {
        return (controller ??= new AbortController()).signal;
      },
      abort: () => controller?.abort(),
    };
  }

  #key(name: string): string {
    return `${this.#prefix}lock/${name}`;
  }

  #clientKey(client: string): string {
    return `${this.#prefix}client/${client}`;
  }
}
