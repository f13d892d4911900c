import { addAbortListener } from 'node:events';
import { lockLost } from './exceptions.ts';
import { makeDeferred } from './deferred.ts';
import type { RequestArguments } from './request-arguments.ts';

/** One call of `request`: its arguments, its progress, and the promise that it returned. */
export class LockRequest {
  /** The number of the request, counted up by its client. */
  readonly number: number;
  /** The label in the store: the id of the client and the request's number. */
  readonly label: string;
  readonly resource: string;
  readonly wanted: RequestArguments;
  readonly promise: Promise<unknown>;
  /** Aborts the wait in core; absent for a request without a signal. */
  readonly abort: AbortController | undefined;
  /** Removals from the store that were requested and may still be under way. */
  readonly removals: Promise<unknown>[] = [];
  state: 'pending' | 'held' | 'over' = 'pending';
  /** Resolved when the lock manager has dealt with the request: it waits in the queue, or its callback was called. */
  readonly processed = makeDeferred();
  /** Resolved when the callback was called, or the request is over. */
  readonly notified = makeDeferred();
  /** Resolved when the withdrawal of the aborted request is being sent to the store. */
  readonly withdrawn = makeDeferred();
  /** Resolved when the request no longer waits. */
  readonly dequeued = makeDeferred();
  /** Resolved when the lock was stolen from its holder, or lost in another way. */
  readonly lost = makeDeferred();
  /** Resolved when the request's promise settles, and nothing more is sent to the store for it. */
  readonly ended = makeDeferred();
  #resolve!: (value: unknown) => void;
  #reject!: (reason: unknown) => void;
  readonly #unfollow: Disposable | undefined;

  /** @param aborted - called once if the signal aborts before the lock is held; the promise is rejected already */
  constructor(
    number: number,
    label: string,
    resource: string,
    wanted: RequestArguments,
    aborted: (request: LockRequest) => void,
  ) {
    this.number = number;
    this.label = label;
    this.resource = resource;
    this.wanted = wanted;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal } = wanted;
    if (signal === undefined) return;
    this.abort = new AbortController();
    // A plain listener would not be called after another listener that stops the event.
    this.#unfollow = addAbortListener(signal, () => {
      this.reject(signal.reason);
      aborted(this);
    });
  }

  get isPending(): boolean {
    return this.state === 'pending';
  }

  get isOver(): boolean {
    return this.state === 'over';
  }

  /** Marks the request as granted: from here on its signal is ignored. */
  markHeld(): void {
    this.state = 'held';
    this.#unfollow?.[Symbol.dispose]();
    this.dequeued.resolve();
    this.notified.resolve();
  }

  /** Rejects the holder's promise at once, even while its callback still runs. */
  lose(cause: unknown): void {
    this.reject(lockLost(cause));
    this.lost.resolve();
  }

  resolve(value: unknown): void {
    this.state = 'over';
    this.notified.resolve();
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    this.state = 'over';
    this.notified.resolve();
    this.#reject(reason);
  }

  end(): void {
    this.#unfollow?.[Symbol.dispose]();
    for (const step of [this.processed, this.dequeued, this.ended]) step.resolve();
  }

  /** Ends the wait in core. Resolves when nothing of the request is left in the store, or on its way there. */
  async withdraw(): Promise<void> {
    this.withdrawn.resolve();
    this.abort?.abort(this.wanted.signal?.reason);
    await this.ended.promise;
    await Promise.allSettled(this.removals);
  }
}
