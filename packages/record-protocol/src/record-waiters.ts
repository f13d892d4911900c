// One file, since whatever wakes, overtakes or ends a waiter must leave the same poll behind.
import {
  type AcquireRequest,
  type Call,
  type Grant,
  type LocalWaiter,
  LocalWaiters,
} from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { AwaitedRow } from './awaited-row.ts';
import { type LockRow, NO_ROW } from './lock-row.ts';
import { PollPace } from './poll-pace.ts';
import { isOvertaken, type LockTable, type RowChange, type Snapshot } from './lock-table.ts';
import type { RowDecision } from './row-decision.ts';
import type { RowWriter } from './row-writer.ts';
import type { RowsInUse, WaiterHooks } from './rows-in-use.ts';
import { DRIFT } from './store-clock.ts';
import { ownLimit, type TimeLimit } from './time-limit.ts';

/** The part of the time after which a client counts as dead, between two of its heartbeats. */
const BEATS = 1_400 / 3_000;
const MIN_POLL_MS = 5;
/** The part of the time left of a hold that has passed for certain when it ends: the rest is for clocks that run apart. */
const LEAST_PART = 1 - DRIFT;
/** A waiter that could enter and did not for this part of that time may be dead. */
const IDLE_PART = 1 / 8;
/** The interval at which waiters are compared with a row that did not change. */
const COMPARE_EVERY_MS = 500;

/**
 * The waiters of this process, and the one poller that reads the table for all of them: quick after a change, slow when nothing
 * happens. A hand-off inside the process needs no poll: the write that releases grants and delivers.
 *
 * One file, since a push, a poll and a write of this process all end alike: in what is known of the row, and in who is to be woken by it.
 */
export class RecordWaiters implements WaiterHooks {
  readonly #table: LockTable;
  readonly #rows: RowsInUse;
  readonly #client: string;
  readonly #waiters: LocalWaiters;
  readonly #awaited = new Map<string, AwaitedRow>();
  #beatAt = -Infinity;
  /** For how long the last heartbeat says that this process lives, in milliseconds. */
  #lives = 0;
  #beating: Promise<void> | undefined;

  constructor(table: LockTable, rows: RowsInUse, client: string) {
    this.#table = table;
    this.#rows = rows;
    this.#client = client;
    this.#waiters = new LocalWaiters({
      pollEveryMs: table.pace.waiterTtlMs * BEATS,
      poll: () => this.#beatAndPoll(),
      emptied: (resource) => {
        this.#awaited.get(resource)?.unwatch?.();
        this.#awaited.delete(resource);
      },
    });
  }

  get hasBeaten(): boolean {
    return this.#beatAt > -Infinity;
  }

  prepareHandOff({ resource, attempting, abandoned }: RowWriter, { id, token }: HoldRecord): () => void {
    // The lease is counted from before the write is sent: the store starts it at a later moment (docs/spec.md §1.2).
    const countedFrom = this.#waiters.get(id)?.call.now();
    return () => {
      const waiter = this.#waiters.get(id);
      // The hold is found by the attempt or the abandon that is in flight.
      if (waiter === undefined && (attempting.has(id) || abandoned.has(id))) return;
      if (waiter === undefined) return this.#abandon(resource, id, token);
      if (countedFrom === undefined) waiter.wait.end();
      else this.#grant(waiter, token, countedFrom);
    };
  }

  async beat(limit: TimeLimit): Promise<void> {
    // Each enqueue comes here: only what is older than the shortest interval is looked at more closely.
    const passedMs = performance.now() - this.#beatAt;
    if (passedMs < this.#table.pace.waiterTtlMs * BEATS) return;
    if (passedMs < Math.min(this.#lives, this.#livesMs) * BEATS) return;
    this.#beating ??= this.#beat(limit).finally(() => {
      this.#beating = undefined;
    });
    await this.#beating;
  }

  learned({ resource, known, knownAt }: RowWriter): void {
    const awaited = this.#awaited.get(resource);
    if (awaited === undefined || known === undefined) return;
    awaited.noteEnds(known, knownAt);
    const { missed } = awaited;
    awaited.missed = undefined;
    if (this.#isHeldHere(resource)) return;
    if (missed !== undefined && !this.#knows(known, missed.found?.rows.get(resource))) this.#pollNow(awaited);
    // The resource that this process released belongs to another process, whose hold may be short: waiters here poll as soon as
    // newcomers do.
    awaited.pace.changed(known, this.#client);
    this.#waiters.pollWithin(awaited.becomeDueSoon());
  }

  /**
   * Records an acquisition that is in the queue, or may be.
   *
   * @param sentAt - `call.now()` before the write that put it there was sent, which may have granted to it too; `undefined`: no answer came
   */
  enqueued(request: AcquireRequest, call: Call, sentAt: number | undefined): void {
    const waiter = this.#register(request, call);
    const { known } = this.#rows.get(request.resource) ?? {};
    const hold = known?.holds.find(({ id }) => id === request.acquisitionId);
    if (sentAt !== undefined && hold !== undefined) this.#grant(waiter, hold.token, sentAt);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const { resource } = request;
    const { grant } = this.#register(request, call);
    const turn = this.#waiters.awaitTurn(request, call);
    if (grant !== undefined) return turn;
    // The poll is rescheduled: while nobody waited, only the heartbeat was due.
    const awaited = this.#awaited.get(resource);
    if (awaited === undefined) return turn;
    if (!this.#isHeldHere(resource)) awaited.pace.mayHaveChanged();
    this.#waiters.pollWithin(awaited.becomeDueSoon());
    return turn;
  }

  /** The acquisition no longer waits: it was granted or given up. */
  left(request: AcquireRequest): void {
    this.#waiters.remove(request);
  }

  close(): void {
    this.#waiters.close();
  }

  #grant(waiter: LocalWaiter, token: number, countedFrom: number): void {
    this.#waiters.grant(waiter, { request: waiter.request, fencingToken: BigInt(token), countedFrom });
  }

  #register(request: AcquireRequest, call: Call): LocalWaiter {
    const { resource } = request;
    if (!this.#awaited.has(resource)) {
      const table = this.#table;
      const unwatch = table.watch?.(resource, (change) => this.#told(resource, change), this.#client);
      const writer = this.#rows.get(resource);
      const pace = writer?.pace ?? new PollPace(table.pace, () => table.tellsWhom === true);
      if (writer !== undefined) writer.pace = pace;
      const leastPart = table.refineEnds === undefined ? 1 : LEAST_PART;
      const awaited = new AwaitedRow(pace, table.pace, leastPart, () => this.#isHeldHere(resource), unwatch);
      this.#awaited.set(resource, awaited);
      // The write that has put the waiter into the queue says how many are before it.
      if (writer?.known !== undefined) {
        pace.changed(writer.known, this.#client);
        awaited.noteEnds(writer.known, writer.knownAt);
        awaited.becomeDueLater();
      }
    }
    return this.#waiters.register(request, call);
  }

  /** The store tells that the resource has changed. */
  #told(resource: string, change?: RowChange): void {
    const awaited = this.#awaited.get(resource);
    if (awaited === undefined) return;
    // A write that calls others is none of this process's business.
    if (change !== undefined && !change.wakes.includes(this.#client)) return awaited.heard();
    if (change === undefined && !awaited.pace.pushed()) return;
    const writer = this.#rows.get(resource);
    if (writer?.busy === true) {
      // What this process writes, it knows; but its write may come before the one that is told, or be refused.
      if (change !== undefined) awaited.missed = change;
    } else this.#called(resource, awaited, change);
  }

  /** It is, or may be, the turn of this process. */
  #called(resource: string, awaited: AwaitedRow, { found }: Partial<RowChange> = {}): void {
    const row = found?.rows.get(resource);
    const { known } = this.#rows.get(resource) ?? {};
    if (found === undefined || row === undefined) this.#pollNow(awaited);
    else if (!this.#knows(known, row)) this.#check(resource, found);
  }

  /** Whether this process has read or written a row, or a later one. */
  #knows(known: LockRow | undefined, row: LockRow | undefined): boolean {
    if (known === undefined || row === undefined) return false;
    return known.version === row.version || this.#table.isOlder?.(row, known) === true;
  }

  #pollNow(awaited: AwaitedRow): void {
    awaited.becomeDue();
    this.#waiters.pollWithin(0);
  }

  #isHeldHere(resource: string): boolean {
    const { known, own } = this.#rows.get(resource) ?? {};
    if (known === undefined || known.holds.length === 0) return false;
    return known.holds.every(({ id }) => own?.has(id) === true);
  }

  async #beatAndPoll(): Promise<void> {
    try {
      this.#giveUpSilent();
      await this.beat(ownLimit());
      if (this.#waiters.pending > 0) await this.#poll();
    } finally {
      if (this.#waiters.pending > 0) this.#planNext();
    }
  }

  #planNext(): void {
    const now = performance.now();
    let pauseMs = this.#table.pace.waiterTtlMs * BEATS;
    let nextEndAt = Infinity;
    for (const awaited of this.#awaited.values()) {
      const planned = awaited.plan(now);
      pauseMs = Math.min(pauseMs, planned.pauseMs);
      nextEndAt = Math.min(nextEndAt, planned.endAt);
    }
    // The pause varies by up to a tenth, so that processes do not poll in step.
    pauseMs *= 0.9 + Math.random() / 5;
    this.#waiters.pollWithin(Math.min(pauseMs, Math.max(MIN_POLL_MS, nextEndAt - now)));
  }

  /** Reads the resources that are waited for here and due, many in one request. */
  async #poll(): Promise<void> {
    const now = performance.now();
    const due = [...this.#awaited].flatMap(([resource, awaited]) => (awaited.takeTurn(now) ? resource : []));
    const { namesAtOnce } = this.#table;
    for (let start = 0; start < due.length; start += namesAtOnce) {
      const names = due.slice(start, start + namesAtOnce);
      const known = names.flatMap((name) => this.#rows.get(name)?.known?.version || []);
      const snapshot = await this.#table.snapshot(names, known, ownLimit());
      this.#rows.learnAlive(snapshot);
      for (const resource of names) await this.#checkWell(resource, snapshot);
    }
  }

  /** Where a waiter could enter and does not, its process may have died, and those behind it too. */
  async #checkWell(resource: string, snapshot: Snapshot): Promise<void> {
    const { waiterTtlMs } = this.#table.pace;
    const { idleHead } = this.#awaited.get(resource) ?? {};
    const row = snapshot.rows.get(resource) ?? this.#rows.get(resource)?.known;
    const isThere = idleHead !== undefined && row?.waiters.some(({ id }) => id === idleHead.id) === true;
    if (isThere && performance.now() - idleHead.since > waiterTtlMs * IDLE_PART)
      await this.#table.lookAt?.(resource, 'next', ownLimit());
    this.#check(resource, snapshot);
  }

  #check(resource: string, snapshot: Snapshot): void {
    const writer = this.#rows.get(resource);
    if (writer === undefined) return this.#waiters.hint(resource);
    // The snapshot is ignored while a write is in flight: it may be from before or after the write.
    if (writer.busy || isOvertaken(snapshot, writer.knownAt, writer.learnedAt)) return this.learned(writer);
    const isAsKnown = snapshot.rows.has(resource) && snapshot.rows.get(resource) === undefined;
    if (!isAsKnown) {
      const row = snapshot.rows.get(resource) ?? NO_ROW;
      writer.learn(row, snapshot.now);
      // The next attempt of each waiter says what is wrong.
      if (row.malformed !== undefined) return this.#waiters.hint(resource);
      writer.sawForeignWrite();
      this.#awaited.get(resource)?.pace.changed(row, this.#client);
    } else if (writer.known !== undefined && snapshot.now > writer.knownAt) {
      writer.learn(writer.known, snapshot.now);
      this.#table.refineEnds?.(writer.known);
    }
    if (writer.known === undefined) return;
    const awaited = this.#awaited.get(resource);
    awaited?.noteEnds(writer.known, snapshot.now);
    this.#hint(writer, writer.known);
    this.#serve(writer);
  }

  /** Wakes the waiters that are no longer in the queue, and abandons the entries of this process that nobody asks for. */
  #hint(writer: RowWriter, known: LockRow): void {
    const now = performance.now();
    if (writer.compared === known && now < writer.comparedAt + COMPARE_EVERY_MS) return;
    writer.compared = known;
    writer.comparedAt = now;
    const queued = new Set(known.waiters.map(({ id }) => id));
    for (const { request, wait } of this.#waiters.of(writer.resource)) {
      if (!queued.has(request.acquisitionId)) wait.end();
    }
    for (const { id, client } of known.waiters) {
      if (client === this.#client && this.#waiters.get(id) === undefined)
        this.#abandon(writer.resource, id, undefined);
    }
  }

  /**
   * Grants free capacity to the waiters of this process at the head, after a release by another process, an expiry, or the
   * death of a head.
   */
  #serve(writer: RowWriter): void {
    const awaited = this.#awaited.get(writer.resource);
    if (awaited === undefined) return;
    const decision = writer.decide(this.#rows.context);
    // `submit()` always serves the queue first, so the step itself does nothing.
    if (decision.changed) this.#inBackground(writer.resource, () => undefined);
    const head = decision.next;
    const since = awaited.noteIdleHead(head?.id);
    // The head's process does not ask for it: the process lives, but polls other resources only.
    if (head === undefined || since === undefined || performance.now() - since < this.#table.pace.waiterTtlMs)
      return;
    this.#inBackground(writer.resource, (later) => {
      if (later.next?.id === head.id) later.abandon(head.id);
    });
  }

  /**
   * Abandons an entry that nobody here asks for: core stopped without abandoning it, or its statement ran after its end.
   *
   * @param token - the token of the hold that was granted to it and not reported to core; `undefined`: none is known
   */
  #abandon(resource: string, acquisitionId: string, token: number | undefined): void {
    this.#inBackground(resource, (decision) => {
      // Core may have asked for the acquisition again by now.
      if (this.#waiters.get(acquisitionId) !== undefined) return;
      if (this.#isAttempting(resource, acquisitionId)) return;
      const hold = decision.holdOf(acquisitionId);
      // A hold is never ended if its owner may know of it (docs/spec.md §11.1). A hold without a time is granted in this very
      // step.
      if (hold === undefined || hold.since === undefined || hold.token === token)
        decision.abandon(acquisitionId);
    });
  }

  #isAttempting(resource: string, acquisitionId: string): boolean {
    return this.#rows.get(resource)?.attempting.has(acquisitionId) ?? false;
  }

  #inBackground(resource: string, decide: (decision: RowDecision) => void): void {
    this.#rows.submit(resource, ownLimit(), decide).catch(() => this.#waiters.hint(resource));
  }

  #giveUpSilent(): void {
    for (const { request, grant } of this.#waiters.silentFor(this.#table.pace.waiterTtlMs)) {
      const { resource, acquisitionId } = request;
      if (this.#isAttempting(resource, acquisitionId)) continue;
      this.left(request);
      this.#abandon(resource, acquisitionId, grant && Number(grant.fencingToken));
    }
  }

  /**
   * For how long a heartbeat of this process is to count. In the back of a crowd that stands still one counts for longer: nobody
   * needs to know of these processes soon, and there are many of them.
   */
  get #livesMs(): number {
    const { waiterTtlMs } = this.#table.pace;
    const { longestWaiterTtlMs = waiterTtlMs } = this.#table;
    for (const { pace } of this.#awaited.values()) if (pace.idleInBackMs < waiterTtlMs) return waiterTtlMs;
    return this.#awaited.size > 0 ? longestWaiterTtlMs : waiterTtlMs;
  }

  async #beat({ now, deadline }: TimeLimit): Promise<void> {
    const startedAt = performance.now();
    const lives = this.#livesMs;
    // The heartbeat is sent without delay, whatever the urgency of the call that needs it.
    await this.#table.beat(this.#client, { now, deadline }, lives);
    this.#lives = lives;
    this.#beatAt = startedAt;
  }
}
