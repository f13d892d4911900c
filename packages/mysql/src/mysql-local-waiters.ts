import {
  type AcquireRequest,
  type Call,
  type Grant,
  type LocalWaiter,
  LocalWaiters,
} from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { type LockRow, NO_ROW } from './lock-row.ts';
import { CLIENT_ALIVE_MS } from './mysql-statements.ts';
import { isOvertaken, type MysqlStore, ownLimit, type TimedSnapshot, type TimeLimit } from './mysql-store.ts';
import { PollPace } from './poll-pace.ts';
import type { RowDecision } from './row-decision.ts';
import type { RowWriter } from './row-writer.ts';
import type { RowWriters, WriterHooks } from './row-writers.ts';

/** A resource that somebody of this process waits for. */
interface Awaited {
  readonly pace: PollPace;
  /** A head of another process that could enter, and the time at which this process first saw that, on `performance.now()`. */
  idleHead: { readonly id: string; readonly since: number } | undefined;
}

const BEAT_EVERY_MS = 1_400;
const MIN_POLL_MS = 5;
/** The most names of one statement, so that the longest names fit into the smallest packet. */
const NAMES_AT_ONCE = 400;
/** The interval at which waiters are compared with a row that did not change. */
const COMPARE_EVERY_MS = 500;

/**
 * The waiters of this process, and the one poller that reads the tables for all of them: quick after a change, slow when nothing
 * happens. A hand-off inside the process needs no poll: the write that releases grants and delivers.
 */
export class MysqlLocalWaiters implements WriterHooks {
  readonly #store: MysqlStore;
  readonly #writers: RowWriters;
  readonly #client: string;
  readonly #maxPollMs: number;
  readonly #waiters = new LocalWaiters({
    pollEveryMs: BEAT_EVERY_MS,
    poll: () => this.#beatAndPoll(),
    emptied: (resource) => this.#awaited.delete(resource),
  });
  readonly #awaited = new Map<string, Awaited>();
  /** The time at which the next hold of a resource with waiters here expires, on `performance.now()`. */
  #nextEndAt = Infinity;
  #beatAt = -Infinity;
  #beating: Promise<void> | undefined;

  constructor(store: MysqlStore, writers: RowWriters, client: string, maxPollMs: number) {
    this.#store = store;
    this.#writers = writers;
    this.#client = client;
    this.#maxPollMs = maxPollMs;
  }

  get hasBeaten(): boolean {
    return this.#beatAt > -Infinity;
  }

  prepareHandOff({ resource, attempting, abandoned }: RowWriter, { id, token }: HoldRecord): () => void {
    // The lease is counted from before the write is sent: the server starts it at a later moment (docs/spec.md §1.2).
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
    if (performance.now() - this.#beatAt < BEAT_EVERY_MS) return;
    this.#beating ??= this.#beat(limit).finally(() => {
      this.#beating = undefined;
    });
    await this.#beating;
  }

  learned({ resource, known, knownAt }: RowWriter): void {
    const awaited = this.#awaited.get(resource);
    if (awaited === undefined || known === undefined) return;
    this.#noteEnds(known, knownAt);
    if (this.#isHeldHere(resource)) return;
    // The resource that this process released belongs to another process, whose hold may be short: waiters here poll as soon as
    // newcomers do.
    awaited.pace.changed(known, this.#client);
    this.#waiters.pollWithin(awaited.pace.pauseMs);
  }

  /**
   * Records an acquisition that is in the queue, or may be.
   *
   * @param sentAt - `call.now()` before the write that put it there was sent; that write may have granted to it too
   */
  enqueued(request: AcquireRequest, call: Call, sentAt?: number): void {
    const waiter = this.#register(request, call);
    const { known } = this.#writers.get(request.resource) ?? {};
    const hold = known?.holds.find(({ id }) => id === request.acquisitionId);
    if (sentAt !== undefined && hold !== undefined) this.#grant(waiter, hold.token, sentAt);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const { resource } = request;
    const { grant } = this.#register(request, call);
    const turn = this.#waiters.awaitTurn(request, call);
    if (grant !== undefined) return turn;
    // The poll is rescheduled: while nobody waited, only the heartbeat was due.
    if (!this.#isHeldHere(resource)) this.#awaited.get(resource)?.pace.changed();
    this.#waiters.pollWithin(this.#pauseOf(resource));
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
    if (!this.#awaited.has(request.resource))
      this.#awaited.set(request.resource, { pace: new PollPace(), idleHead: undefined });
    return this.#waiters.register(request, call);
  }

  /** Whether only this process holds the resource, which then needs few polls: its release here serves the queue. */
  #isHeldHere(resource: string): boolean {
    const { known, own } = this.#writers.get(resource) ?? {};
    if (known === undefined || known.holds.length === 0) return false;
    return known.holds.every(({ id }) => own?.has(id) === true);
  }

  /** The time for which a resource needs no poll, in milliseconds. */
  #pauseOf(resource: string): number {
    const awaited = this.#awaited.get(resource);
    if (awaited === undefined || this.#isHeldHere(resource)) return this.#maxPollMs;
    return Math.min(awaited.pace.pauseMs, this.#maxPollMs);
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
    let soonestMs = this.#maxPollMs;
    for (const resource of this.#awaited.keys()) soonestMs = Math.min(soonestMs, this.#pauseOf(resource));
    // The pause varies by up to a tenth, so that processes do not poll in step.
    const pauseMs = soonestMs * (0.9 + Math.random() / 5);
    const untilEndMs = Math.max(MIN_POLL_MS, this.#nextEndAt - performance.now());
    this.#waiters.pollWithin(Math.min(pauseMs, untilEndMs));
  }

  /** Reads hundreds of resources that are waited for here in one statement. */
  async #poll(): Promise<void> {
    const all = [...this.#awaited.keys()];
    this.#nextEndAt = Infinity;
    for (let start = 0; start < all.length; start += NAMES_AT_ONCE) {
      const names = all.slice(start, start + NAMES_AT_ONCE);
      const known = names.flatMap((name) => this.#writers.get(name)?.known?.version || []);
      const snapshot = await this.#store.snapshot(names, known, ownLimit());
      this.#writers.learnAlive(snapshot);
      for (const resource of names) this.#check(resource, snapshot);
    }
  }

  #check(resource: string, snapshot: TimedSnapshot): void {
    const writer = this.#writers.get(resource);
    if (writer === undefined) return this.#waiters.hint(resource);
    // The snapshot is ignored while a write is in flight: it may be from before or after the write.
    if (writer.busy || isOvertaken(snapshot, writer.knownAt, writer.learnedAt)) return this.learned(writer);
    const isAsKnown = snapshot.rows.has(resource) && snapshot.rows.get(resource) === undefined;
    if (!isAsKnown) {
      const row = snapshot.rows.get(resource) ?? NO_ROW;
      writer.learn(row, snapshot.now);
      this.#awaited.get(resource)?.pace.changed(row, this.#client);
    } else if (writer.known !== undefined && snapshot.now > writer.knownAt) {
      writer.learn(writer.known, snapshot.now);
    }
    if (writer.known === undefined) return;
    this.#noteEnds(writer.known, snapshot.now);
    this.#hint(writer, writer.known);
    this.#serve(writer, writer.known);
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
      if (client === this.#client && this.#waiters.get(id) === undefined) this.#abandon(writer.resource, id);
    }
  }

  /**
   * Grants free capacity to the waiters of this process at the head, after a release by another process, an expiry, or the
   * death of a head.
   */
  #serve(writer: RowWriter, known: LockRow): void {
    const awaited = this.#awaited.get(writer.resource);
    if (awaited === undefined) return;
    const decision = writer.decide(this.#writers.context, known);
    // `submit()` always serves the queue first, so the step itself does nothing.
    if (decision.changed) this.#inBackground(writer.resource, () => undefined);
    const { idleHead } = awaited;
    const head = decision.next;
    const since = head?.id === idleHead?.id ? idleHead?.since : undefined;
    awaited.idleHead = head && { id: head.id, since: since ?? performance.now() };
    // The head's process does not ask for it: the process lives, but polls other resources only.
    if (head === undefined || since === undefined || performance.now() - since < CLIENT_ALIVE_MS) return;
    this.#inBackground(writer.resource, (later) => {
      if (later.next?.id === head.id) later.abandon(head.id);
    });
  }

  /**
   * Abandons an entry that nobody here asks for: core stopped without abandoning it, or its statement ran after its end.
   *
   * @param token - the token of the hold that was granted to it and not reported to core
   */
  #abandon(resource: string, acquisitionId: string, token?: number): void {
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
    return this.#writers.get(resource)?.attempting.has(acquisitionId) ?? false;
  }

  #inBackground(resource: string, decide: (decision: RowDecision) => void): void {
    this.#writers.submit(resource, ownLimit(), decide).catch(() => this.#waiters.hint(resource));
  }

  #giveUpSilent(): void {
    for (const { request, grant } of this.#waiters.silentFor(CLIENT_ALIVE_MS)) {
      const { resource, acquisitionId } = request;
      if (this.#isAttempting(resource, acquisitionId)) continue;
      this.left(request);
      this.#abandon(resource, acquisitionId, grant && Number(grant.fencingToken));
    }
  }

  #noteEnds({ holds }: LockRow, serverNow: number): void {
    for (const { until } of holds) {
      if (until === undefined) continue;
      // The server's clock ticks on while its answer is on the way: a poll a little later is not in vain.
      const endAt = performance.now() + Math.max(0, until - serverNow) / 1_000 + 1;
      this.#nextEndAt = Math.min(this.#nextEndAt, endAt);
    }
  }

  async #beat({ now, deadline }: TimeLimit): Promise<void> {
    const startedAt = performance.now();
    // The heartbeat is sent without delay, whatever the urgency of the call that needs it.
    await this.#store.write(this.#store.statements.beat(this.#client), { now, deadline });
    this.#beatAt = startedAt;
  }
}
