import { addAbortListener } from 'node:events';
import { lockLost } from './exceptions.ts';
import { makeLatch } from './latch.ts';
import type { RequestArguments } from './request-arguments.ts';

/** One call of `request`: what it wants, how far it has come, and the promise that it gave. */
export class LockRequest {
  /** Rises with every request of the client. */
  readonly number: number;
  /** What the store shows: the client, and which of its requests this is. */
  readonly label: string;
  readonly resource: string;
  readonly wanted: RequestArguments;
  readonly promise: Promise<unknown>;
  /** Aborts the wait in core; absent where nobody can abort. */
  readonly abort: AbortController | undefined;
  state: 'pending' | 'held' | 'over' = 'pending';
  /** The lock manager has dealt with the request: it waits in the queue, or its callback was called. */
  readonly processed = makeLatch();
  /** It waits no more. */
  readonly advanced = makeLatch();
  /** The lock was taken from its holder. */
  readonly robbed = makeLatch();
  /** Nothing of it is left in the store, or it is on its way out. */
  readonly ended = makeLatch();
  #resolve!: (value: unknown) => void;
  #reject!: (reason: unknown) => void;
  #unfollow: Disposable | undefined;

  constructor(number: number, label: string, resource: string, wanted: RequestArguments) {
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
    // Unlike a plain listener it is not silenced by one that stops the event.
    this.#unfollow = addAbortListener(signal, () => this.#aborted(signal.reason));
  }

  get isPending(): boolean {
    return this.state === 'pending';
  }

  get isOver(): boolean {
    return this.state === 'over';
  }

  /** From here on the signal is ignored. */
  markHeld(): void {
    this.state = 'held';
    this.#unfollow?.[Symbol.dispose]();
    this.advanced.open();
  }

  /** The holder is told at once, whatever its callback still does. */
  rob(cause: unknown): void {
    this.reject(lockLost(cause));
    this.robbed.open();
  }

  resolve(value: unknown): void {
    this.state = 'over';
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    this.state = 'over';
    this.#reject(reason);
  }

  end(): void {
    this.#unfollow?.[Symbol.dispose]();
    for (const latch of [this.processed, this.advanced, this.ended]) latch.open();
  }

  #aborted(reason: unknown): void {
    this.reject(reason);
    this.abort?.abort(reason);
  }
}
