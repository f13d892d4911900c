import { randomUUID } from 'node:crypto';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import type { RedisProxy } from './proxy/redis-proxy.ts';

/** A call without a deadline. */
export const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export function request(resource: string, ttlMs = 30_000): AcquireRequest {
  return { resource, acquisitionId: randomUUID(), label: 'test', mode: { kind: 'exclusive' }, ttlMs };
}

export function granted(attempt: Attempt): Grant {
  if (attempt.status !== 'granted') throw new Error('contended');
  return attempt.grant;
}

/** A backend on a client of its own, as another process would have, called without core in between. */
export class Participant implements AsyncDisposable {
  readonly backend: LockBackend;
  readonly #end: () => unknown;

  constructor(backend: LockBackend, end: () => unknown) {
    this.backend = backend;
    this.#end = end;
  }

  async take(resource: string, ttlMs?: number): Promise<Grant> {
    return granted(await this.backend.attempt(request(resource, ttlMs), true, call));
  }

  /** Enqueues, and returns the turn to come. */
  async queue(wanted: AcquireRequest): Promise<{ readonly turn: Promise<Grant | undefined> }> {
    const { status } = await this.backend.attempt(wanted, true, call);
    if (status === 'granted') throw new Error('not contended');
    const turn = this.backend.awaitTurn?.(wanted, call) ?? Promise.reject(new Error('no awaitTurn'));
    turn.catch(() => undefined);
    return { turn };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.backend.close();
    await this.#end();
  }
}

/** Hands a lock off three times, each time with the channel of the waiter cut; rejects when a hand-off is lost. */
export async function handOffOverCutChannel(
  holder: Participant,
  waiter: Participant,
  proxyOfWaiter: RedisProxy,
  resource: string,
): Promise<void> {
  let grant = await holder.take(resource);
  for (let round = 0; round < 3; round += 1) {
    const { turn } = await waiter.queue(request(resource));
    proxyOfWaiter.cut((connection) => connection.sawSubscribe);
    await holder.backend.release(grant, call);
    const handed = await turn;
    if (handed === undefined) throw new Error('The hand-off was lost.');
    await waiter.backend.release(handed, call);
    grant = await holder.take(resource);
  }
}
