import { randomBytes } from 'node:crypto';
import { type AcquireRequest, type Call, type Grant, TurnWait } from '@locks/core/backend';
import type { PostgresStatements } from '../pool/postgres-statements.ts';
import { Listener } from './listener.ts';
import type { CheckedPostgresLeaseOptions } from './options.ts';
import type { PostgresWaiter, WaiterRegistry } from './postgres-waiter.ts';
import { type AttemptReply, type HandOff, parseHandOff } from './replies.ts';
import { PostgresWaiterHeartbeat } from './waiter-heartbeat.ts';

/**
 * The time for which given-up ids are kept: longer than a queue entry whose abandon was lost, which a check removes 10 s after
 * its enqueue.
 */
const GIVEN_UP_MS = 15_000;

/** All acquisitions of this backend that wait for a lock, and how a hand-off finds its waiter. */
export class PostgresLocalWaiters implements WaiterRegistry {
  /** The name by which the store knows this backend. */
  readonly client = randomBytes(9).toString('base64url');
  readonly #waiters = new Map<string, PostgresWaiter>();
  /** The number of waiters for each name. */
  readonly #counts = new Map<string, number>();
  /** The acquisitions that were given up lately and may still hold or wait in the store, the oldest first. */
  readonly #givenUp = new Map<string, GivenUp>();
  readonly #abandon: (request: AcquireRequest, call: Call) => void;
  readonly #listener: Listener | undefined;
  readonly #heartbeat: PostgresWaiterHeartbeat;
  #closed = false;

  /** @param abandon - abandons an acquisition in the background */
  constructor(
    statements: PostgresStatements,
    { listen, schema }: CheckedPostgresLeaseOptions,
    abandon: (request: AcquireRequest, call: Call) => void,
  ) {
    this.#abandon = abandon;
    if (listen !== false) {
      this.#listener = new Listener(statements.pool, listen, `locks_${this.client}`, {
        message: (payload) => this.#onMessage(payload),
        listening: () => this.#heartbeat.tellOfListener(),
        lost: () => this.#heartbeat.tellOfListener(),
        pooled: () => {
          warnOfPolling();
          this.#heartbeat.poll();
        },
      });
    }
    this.#heartbeat = new PostgresWaiterHeartbeat(statements, this.#listener, schema, this);
    if (listen === false) this.#heartbeat.poll();
  }

  get waiters(): ReadonlyMap<string, PostgresWaiter> {
    return this.#waiters;
  }

  /** Whether anybody of this backend waits for a name. */
  waitsFor(resource: string): boolean {
    return this.#counts.has(resource);
  }

  /** Called before an enqueue is sent: a hand-off may arrive before the reply. */
  enter(request: AcquireRequest, call: Call): void {
    const known = this.#waiters.get(request.acquisitionId);
    if (known === undefined) this.#count(request.resource, 1);
    this.#waiters.set(request.acquisitionId, {
      request,
      call,
      turn: known?.turn ?? new TurnWait(),
      ticket: undefined,
      confirmedAt: 0,
      early: known?.early,
      grant: undefined,
      passedOver: false,
    });
  }

  /** Called with the reply to an attempt. */
  answered(id: string, reply: AttemptReply, sentAt: number): void {
    if (reply.status !== 'queued') return this.leave(id);
    const waiter = this.#waiters.get(id);
    // The acquisition was given up while the attempt was under way: core abandons it.
    if (waiter === undefined || this.#closed) return;
    waiter.ticket = reply.ticket;
    waiter.confirmedAt = sentAt;
    this.#listener?.open();
    this.#heartbeat.expect(reply.expiryMs);
    this.#heartbeat.tellOfListener();
    const { early } = waiter;
    waiter.early = undefined;
    if (early !== undefined) this.handOff(early, undefined);
  }

  /** Records that the caller gave up: a hand-off to the acquisition that is found later is abandoned. */
  giveUp(request: AcquireRequest, call: Call): void {
    const id = request.acquisitionId;
    const now = performance.now();
    for (const [old, { at }] of this.#givenUp) {
      if (now - at < GIVEN_UP_MS) break;
      this.#givenUp.delete(old);
    }
    const isQueued = this.#waiters.get(id)?.ticket !== undefined;
    this.#givenUp.set(id, { request, call, isQueued, at: now });
    this.leave(id);
  }

  /** Called when the store has answered the abandon. */
  abandoned(id: string): void {
    // An attempt that was still under way may have registered the waiter again.
    this.leave(id);
    // An enqueue may arrive after its abandon, unless it was answered before.
    if (this.#givenUp.get(id)?.isQueued) this.#givenUp.delete(id);
  }

  /**
   * Abandons a lock that was handed off to a given-up acquisition: the abandon was lost, or overtook the enqueue. Ignores
   * an id that was granted: a hand-off may be told twice, by a message and by a check.
   */
  abandonGivenUp(id: string): void {
    const given = this.#givenUp.get(id);
    if (given !== undefined) this.#abandon(given.request, given.call);
  }

  /** Removes an acquisition that waits no more: it was granted or given up. */
  leave(id: string): void {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return;
    this.#waiters.delete(id);
    this.#count(waiter.request.resource, -1);
    waiter.turn.end();
    if (this.#waiters.size === 0) this.#heartbeat.stop();
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const id = request.acquisitionId;
    const waiter = this.#waiters.get(id);
    if (waiter === undefined || waiter.passedOver) return Promise.resolve(undefined);
    if (waiter.grant !== undefined) {
      this.leave(id);
      return Promise.resolve(waiter.grant);
    }
    return waiter.turn.begin(call);
  }

  /**
   * Grants the lock to the waiter that a hand-off names.
   *
   * @param ageMs - for a hand-off that came in a reply: how long ago the request was sent. A pushed message proves nothing
   *   about time (docs/spec.md §1.2), so its lease is counted from the last request that found the acquisition waiting.
   */
  handOff(message: HandOff, ageMs: (() => number) | undefined): void {
    const waiter = this.#waiters.get(message.id);
    if (waiter === undefined) return this.abandonGivenUp(message.id);
    if (waiter.grant !== undefined) return;
    if (waiter.ticket === undefined) {
      waiter.early = message;
      return;
    }
    // A token below the ticket is that of an older hand-off to this acquisition, which lapsed before the acquisition queued
    // again.
    if (message.token < waiter.ticket) return;
    // The clock is read before the age: time that passes between the two makes the lease shorter, not longer.
    const now = waiter.call.now();
    const countedFrom = ageMs === undefined ? waiter.confirmedAt : now - ageMs();
    this.grant(waiter, message.token, countedFrom, waiter.request.ttlMs);
  }

  /** Grants the locks of all hand-offs of one reply. */
  handOffAll(handOffs: readonly HandOff[], ageMs: () => number): void {
    for (const handOff of handOffs) this.handOff(handOff, ageMs);
  }

  grant(waiter: PostgresWaiter, fencingToken: bigint, countedFrom: number, validForMs: number): void {
    const { request, turn } = waiter;
    const grant: Grant = { request, fencingToken, countedFrom, validForMs };
    if (turn.end(grant)) this.leave(request.acquisitionId);
    else waiter.grant = grant;
  }

  /** Ends the wait of an acquisition that the store does not have in its queue: core attempts again. */
  passedOver(waiter: PostgresWaiter): void {
    waiter.ticket = undefined;
    waiter.passedOver = true;
    waiter.turn.end();
  }

  close(): void {
    this.#closed = true;
    this.#heartbeat.stop();
    this.#listener?.close();
    for (const id of [...this.#waiters.keys()]) this.leave(id);
  }

  #onMessage(payload: string): void {
    // Any role of the database may notify any channel.
    if (/^\S+ \d+$/.test(payload)) this.handOff(parseHandOff(payload), undefined);
  }

  #count(resource: string, by: 1 | -1): void {
    const count = (this.#counts.get(resource) ?? 0) + by;
    if (count > 0) this.#counts.set(resource, count);
    else this.#counts.delete(resource);
  }
}

interface GivenUp {
  readonly request: AcquireRequest;
  readonly call: Call;
  /** Whether the store had answered that the acquisition waits. */
  readonly isQueued: boolean;
  readonly at: number;
}

function warnOfPolling(): void {
  process.emitWarning(
    'The database is reached through a pooler, where LISTEN does not work: waiters of @locks/postgres poll. Give ' +
      'postgresLeaseBackend `listen: { connectionString }` with a direct address, or `listen: false` to poll without this warning.',
    { code: 'LOCKS_POSTGRES_POLLING' },
  );
}
