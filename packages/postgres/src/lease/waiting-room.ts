import { randomBytes } from 'node:crypto';
import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type pg from 'pg';
import type { Statements } from '../pool/statements.ts';
import { CheckRound } from './check-round.ts';
import { Listener } from './listener.ts';
import type { CheckedOptions } from './options.ts';
import { type AttemptReply, type HandOver, parseHandOver } from './replies.ts';

/** One acquisition in the queue of a resource, from the enqueue that is sent for it to its grant or its end. */
export interface Waiter {
  readonly request: AcquireRequest;
  readonly call: Call;
  /** Its place in the queue; none while the enqueue is under way. */
  ticket: bigint | undefined;
  /** On core's clock: when the last request was sent that found it waiting. */
  confirmedAt: number;
  /** Arrived before the reply to its own enqueue. */
  early: HandOver | undefined;
  /** Arrived while nobody was in `awaitTurn`. */
  grant: Grant | undefined;
  /** It is in the queue no more, and should attempt again. */
  passedOver: boolean;
  /** Ends `awaitTurn`, while somebody is in it. */
  wake: ((grant: Grant | undefined) => void) | undefined;
  /** Likewise, with what is wrong with the store. */
  fail: ((error: unknown) => void) | undefined;
}

/** Everybody of this backend who waits for a lock, and how a hand-over finds its waiter. */
export class WaitingRoom {
  /** How the store knows this backend. One that begins with a point is not told of anything. */
  readonly client: string;
  readonly #waiters = new Map<string, Waiter>();
  /** How many wait for each name. */
  readonly #counts = new Map<string, number>();
  readonly #listener: Listener | undefined;
  readonly #round: CheckRound;
  #closed = false;

  constructor(statements: Statements, pool: pg.Pool, options: CheckedOptions) {
    const name = randomBytes(9).toString('base64url');
    this.client = options.listen === false ? `.${name}` : name;
    if (options.listen !== false) {
      this.#listener = new Listener(pool, options.listen, `locks_${name}`, {
        message: (payload) => this.handOver(parseHandOver(payload), undefined),
        listening: () => this.#round.run(),
        pooled: () => {
          warnOfPolling();
          this.#round.poll();
        },
      });
    }
    this.#round = new CheckRound(statements, this.#listener, options.schema, this);
    if (options.listen === false) this.#round.poll();
  }

  get waiters(): ReadonlyMap<string, Waiter> {
    return this.#waiters;
  }

  /** Whether anybody of this backend waits for a name. */
  waitsFor(resource: string): boolean {
    return this.#counts.has(resource);
  }

  /** Before an enqueue is sent. */
  enter(request: AcquireRequest, call: Call): void {
    const known = this.#waiters.get(request.acquisitionId);
    if (known === undefined) this.#count(request.resource, 1);
    this.#waiters.set(request.acquisitionId, {
      request,
      call,
      ticket: undefined,
      confirmedAt: 0,
      early: known?.early,
      grant: undefined,
      passedOver: false,
      wake: known?.wake,
      fail: known?.fail,
    });
  }

  /** After an attempt was answered. */
  answered(id: string, reply: AttemptReply, sentAt: number): void {
    if (reply.status !== 'queued') return this.leave(id);
    const waiter = this.#waiters.get(id);
    // Given up meanwhile: core abandons it.
    if (waiter === undefined || this.#closed) return;
    waiter.ticket = reply.ticket;
    waiter.confirmedAt = sentAt;
    this.#listener?.open();
    this.#round.expect(reply.expiryMs);
    const { early } = waiter;
    waiter.early = undefined;
    if (early !== undefined) this.handOver(early, undefined);
  }

  /** It waits no more: granted, or given up. */
  leave(id: string): void {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) return;
    this.#waiters.delete(id);
    this.#count(waiter.request.resource, -1);
    waiter.wake?.(undefined);
    if (this.#waiters.size === 0) this.#round.stop();
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const id = request.acquisitionId;
    const waiter = this.#waiters.get(id);
    if (waiter === undefined || waiter.passedOver) return Promise.resolve(undefined);
    if (waiter.grant !== undefined) {
      this.leave(id);
      return Promise.resolve(waiter.grant);
    }
    return new Promise((resolve, reject) => {
      waiter.wake?.(undefined);
      const { signal } = call;
      const ended = (): void => {
        if (waiter.wake === wake) waiter.wake = waiter.fail = undefined;
        signal?.removeEventListener('abort', stop);
      };
      const wake = (grant: Grant | undefined): void => {
        ended();
        resolve(grant);
      };
      const stop = (): void => wake(undefined);
      waiter.wake = wake;
      waiter.fail = (error) => {
        ended();
        reject(error);
      };
      if (signal?.aborted) return stop();
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  /**
   * A waiter's turn has come.
   *
   * @param ageMs - for a hand-over that came as a reply: tells how long ago its request was sent. A pushed message proves
   *   nothing about time (docs/spec.md §1.2): it is counted from the last request that found the acquisition waiting.
   */
  handOver(message: HandOver, ageMs: (() => number) | undefined): void {
    const waiter = this.#waiters.get(message.id);
    // Given up: core abandons it, and by itself the hand-over lasts for the claim time only (docs/spec.md §2.2).
    if (waiter === undefined || waiter.grant !== undefined) return;
    if (waiter.ticket === undefined) {
      waiter.early = message;
      return;
    }
    // An older hand-over to the same acquisition, which lapsed before it queued again.
    if (message.token < waiter.ticket) return;
    // In this order: what passes between the two readings makes the lease shorter, not longer.
    const now = waiter.call.now();
    const countedFrom = ageMs === undefined ? waiter.confirmedAt : now - ageMs();
    if (countedFrom + message.ms / 2 < waiter.call.now()) return this.#round.claim(waiter);
    this.grant(waiter, message.token, countedFrom, message.ms);
  }

  grant(waiter: Waiter, fencingToken: bigint, countedFrom: number, validForMs: number): void {
    const { request, wake } = waiter;
    const grant: Grant = { request, fencingToken, countedFrom, validForMs };
    if (wake === undefined) {
      waiter.grant = grant;
      return;
    }
    waiter.wake = waiter.fail = undefined;
    this.leave(request.acquisitionId);
    wake(grant);
  }

  /** The store does not have it in the queue: it shall attempt again. */
  passedOver(waiter: Waiter): void {
    waiter.ticket = undefined;
    waiter.passedOver = true;
    waiter.wake?.(undefined);
  }

  /** The store gave no answer: the wait ends with what is wrong, and core attempts again. */
  failed(waiter: Waiter, error: unknown): void {
    waiter.fail?.(error);
  }

  #count(resource: string, by: 1 | -1): void {
    const count = (this.#counts.get(resource) ?? 0) + by;
    if (count > 0) this.#counts.set(resource, count);
    else this.#counts.delete(resource);
  }

  close(): void {
    this.#closed = true;
    this.#round.stop();
    this.#listener?.close();
    for (const id of [...this.#waiters.keys()]) this.leave(id);
  }
}

function warnOfPolling(): void {
  process.emitWarning(
    'The database is reached through a pooler, where LISTEN does not work: waiters of @locks/postgres poll. Give ' +
      'postgresLeaseBackend `listen: { connectionString }` with a direct address, or `listen: false` to poll without this warning.',
    { code: 'LOCKS_POSTGRES_POLLING' },
  );
}
