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
  /** Aborts the wait in core; absent where nobody can abort. */
  readonly abort: AbortController | undefined;
  readonly promise: Promise<unknown>;
  state: 'pending' | 'held' | 'over' = 'pending';
  readonly #processed = makeLatch();
  readonly #advanced = makeLatch();
  readonly #robbed = makeLatch();
  readonly #ended = makeLatch();
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

  /** Resolves when the lock manager has dealt with the request: it waits in the queue, or its callback was called. */
  get processed(): Promise<void> {
    return this.#processed.opened;
  }

  /** Resolves when the request waits no more. */
  get advanced(): Promise<void> {
    return this.#advanced.opened;
  }

  /** Resolves when the lock was taken from its holder. */
  get robbed(): Promise<void> {
    return this.#robbed.opened;
  }

  /** Resolves when nothing of it is left in the store, or when it is on its way out. */
  get ended(): Promise<void> {
    return this.#ended.opened;
  }

  markProcessed(): void {
    this.#processed.open();
  }

  /** From here on the signal is ignored. */
  markHeld(): void {
    this.state = 'held';
    this.#unfollow?.[Symbol.dispose]();
    this.#advanced.open();
  }

  /** The holder is told at once, whatever its callback still does. */
  rob(cause: unknown): void {
    if (this.state !== 'held') return;
    this.reject(lockLost(cause));
    this.#robbed.open();
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
    this.#processed.open();
    this.#advanced.open();
    this.#ended.open();
  }

  #aborted(reason: unknown): void {
    if (!this.isPending) return;
    this.reject(reason);
    this.abort?.abort(reason);
  }
}
