import type { Call, Grant } from './types.ts';
import { MAX_TIMEOUT_MS } from './time-limit.ts';

interface Wait<G> {
  readonly call: Call;
  readonly resolve: (grant: G | undefined) => void;
  readonly reject: (error: unknown) => void;
  readonly timer: NodeJS.Timeout | undefined;
}

/**
 * The waits of one waiter in `awaitTurn`: at most one at a time, which ends once, by a grant, by a hint, by an error, or when
 * its call ends. A backend keeps one `TurnWait` for each waiter, returns `begin(call)` from `awaitTurn`, and calls `end` or
 * `fail` when the store reports something about the waiter.
 *
 * @example
 * ```ts
 * import { type AcquireRequest, type Call, type Grant, TurnWait } from '@locks/core/backend';
 *
 * const waits = new Map<string, TurnWait>();
 *
 * export function awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
 *   const wait = waits.get(request.acquisitionId) ?? new TurnWait();
 *   waits.set(request.acquisitionId, wait);
 *   return wait.begin(call);
 * }
 *
 * export function lockWasFreed(acquisitionId: string): void {
 *   waits.get(acquisitionId)?.end();
 * }
 * ```
 */
export class TurnWait<G extends Grant = Grant> {
  readonly #ended: (() => void) | undefined;
  readonly #hint = (): void => void this.end();
  #wait: Wait<G> | undefined;

  /** @param ended - called whenever a wait ends, before its promise resolves */
  constructor(ended?: () => void) {
    this.#ended = ended;
  }

  /** The call of the wait; `undefined` while nobody waits. */
  get call(): Call | undefined {
    return this.#wait?.call;
  }

  /** Ends an earlier wait, and waits. A call that is over already gets `undefined`. */
  begin(call: Call): Promise<G | undefined> {
    this.end();
    const { signal } = call;
    const leftMs = call.deadline - call.now();
    if (leftMs <= 0 || signal?.aborted === true) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      // The signal aborts at the deadline too: thousands of waiters need no timer each.
      const needsTimer = signal === undefined && leftMs <= MAX_TIMEOUT_MS;
      const timer = needsTimer ? setTimeout(this.#hint, Math.ceil(leftMs)).unref() : undefined;
      this.#wait = { call, resolve, reject, timer };
      signal?.addEventListener('abort', this.#hint, { once: true });
    });
  }

  /** Ends the wait with the grant, or without one: a hint to attempt again. Returns `false` where nobody waits. */
  end(grant?: G): boolean {
    const wait = this.#take();
    wait?.resolve(grant);
    return wait !== undefined;
  }

  /** Ends the wait with an error of the store. Returns `false` where nobody waits. */
  fail(error: unknown): boolean {
    const wait = this.#take();
    wait?.reject(error);
    return wait !== undefined;
  }

  #take(): Wait<G> | undefined {
    const wait = this.#wait;
    if (wait === undefined) return undefined;
    this.#wait = undefined;
    clearTimeout(wait.timer);
    wait.call.signal?.removeEventListener('abort', this.#hint);
    this.#ended?.();
    return wait;
  }
}
