import { randomBytes } from 'node:crypto';
import { type AcquireRequest, type Call, type Grant, LocalWaiters } from '@locks/core/backend';
import { canOpen, type OwnConnection } from '../driver/postgres-driver.ts';
import type { PostgresStatements } from '../driver/postgres-statements.ts';
import { Listener } from './listener.ts';
import type { CheckedLeaseOptions } from './options.ts';
import type { PostgresWaiter, WaiterRegistry } from './postgres-waiter.ts';
import { type AttemptReply, type HandOff, parseHandOff } from './replies.ts';
import { PostgresWaiterHeartbeat } from './waiter-heartbeat.ts';

/**
 * The time for which given-up ids are kept: longer than a queue entry whose abandon was lost, which a check removes 10 s after
 * its enqueue.
 */
const GIVEN_UP_MS = 15_000;

/** The application name of the listener. */
const LISTENER = '@locks/postgres listener';

/** All acquisitions of this backend that wait for a lock, and how a hand-off finds its waiter. */
export class NotifiedWaiters implements WaiterRegistry {
  /** The name by which the store knows this backend. */
  readonly client = randomBytes(9).toString('base64url');
  readonly known = new LocalWaiters<PostgresWaiter>({
    make: (waiter) => ({ ...waiter, ticket: undefined, confirmedAt: 0, early: undefined }),
    poll: () => this.#heartbeat.check(),
  });
  /** The acquisitions that were given up lately and may still hold or wait in the store, the oldest first. */
  readonly #givenUp = new Map<string, GivenUp>();
  readonly #abandon: (request: AcquireRequest, call: Call) => void;
  readonly #listener: Listener | undefined;
  readonly #heartbeat: PostgresWaiterHeartbeat;

  /** @param abandon - abandons an acquisition in the background */
  constructor(
    statements: PostgresStatements,
    { listen, schema }: CheckedLeaseOptions,
    abandon: (request: AcquireRequest, call: Call) => void,
  ) {
    this.#abandon = abandon;
    const { driver } = statements;
    if (listen !== false && canOpen(driver)) {
      const address = typeof listen === 'object' ? listen.url : undefined;
      const connect = (): OwnConnection => driver.open(LISTENER, address);
      this.#listener = new Listener(connect, `locks_${this.client}`, {
        message: (payload) => this.#onMessage(payload),
        listening: () => this.#heartbeat.tellOfListener(),
        lost: () => this.#heartbeat.tellOfListener(),
        pooled: () => {
          warnOfPolling();
          this.#heartbeat.checkOften();
        },
      });
    }
    this.#heartbeat = new PostgresWaiterHeartbeat(statements, this.#listener, schema, this);
  }

  /** Called before an enqueue is sent: a hand-off may arrive before the reply. */
  register(request: AcquireRequest, call: Call): void {
    // An attempt may end after its abandon was answered: nobody would remove the waiter then.
    if (this.#givenUp.has(request.acquisitionId)) return;
    const waiter = this.known.register(request, call);
    waiter.ticket = undefined;
    waiter.grant = undefined;
  }

  /** Called with the reply to an attempt. */
  answered(request: AcquireRequest, reply: AttemptReply, sentAt: number): void {
    if (reply.status !== 'queued') return void this.known.remove(request);
    const waiter = this.known.get(request.acquisitionId);
    // The acquisition was given up while the attempt was under way: core abandons it.
    if (waiter === undefined) return;
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
    const isQueued = this.known.remove(request)?.ticket !== undefined;
    this.#givenUp.set(id, { request, call, isQueued, at: now });
  }

  /** Called when the store has answered the abandon. */
  abandoned(id: string): void {
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

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    // The acquisition was given up, or the store passed it over and core has to attempt again.
    if (this.known.get(request.acquisitionId)?.ticket === undefined) return Promise.resolve(undefined);
    return this.known.awaitTurn(request, call);
  }

  /**
   * Grants the lock to the waiter that a hand-off names.
   *
   * @param ageMs - for a hand-off that came in a reply: how long ago the request was sent. A pushed message proves nothing
   *   about time (docs/spec.md §1.2), so its lease is counted from the last request that found the acquisition waiting.
   */
  handOff(message: HandOff, ageMs: (() => number) | undefined): void {
    const waiter = this.known.get(message.id);
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
    const { request } = waiter;
    this.known.grant(waiter, {
      request,
      fencingToken: message.token,
      countedFrom,
      validForMs: request.ttlMs,
    });
  }

  /** Grants the locks of all hand-offs of one reply. */
  handOffAll(handOffs: readonly HandOff[], ageMs: () => number): void {
    for (const handOff of handOffs) this.handOff(handOff, ageMs);
  }

  close(): void {
    this.#listener?.close();
    this.known.close();
  }

  #onMessage(payload: string): void {
    // Any role of the database may notify any channel.
    if (/^\S+ \d+$/.test(payload)) this.handOff(parseHandOff(payload), undefined);
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
      'postgresLeaseBackend `listen: { url }` with a direct address, or `listen: false` to poll without this warning.',
    { code: 'LOCKS_POSTGRES_POLLING' },
  );
}
