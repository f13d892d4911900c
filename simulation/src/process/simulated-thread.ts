import type { SimulatedProcess, WorkerThread } from './simulated-process.ts';

/** How long a message between two threads is on its way at most, in milliseconds. */
const MESSAGE_MS = 0.3;

type Listener = (value: unknown) => void;

/**
 * A worker thread of a simulated process, as both see it. It has the clocks and the memory of the process, and stands still and ends by
 * itself.
 */
export class SimulatedThread implements WorkerThread {
  readonly thread: SimulatedProcess;
  readonly workerData: unknown;
  isReady = false;
  readonly #owner: SimulatedProcess;
  readonly #listeners = new Map<string, Listener>();
  #onMessage: Listener = () => {};
  #lastArrival = 0;

  constructor(owner: SimulatedProcess, thread: SimulatedProcess, workerData: unknown) {
    this.#owner = owner;
    this.thread = thread;
    this.workerData = workerData;
  }

  /** What the thread has of `node:worker_threads`. */
  readonly parentPort = {
    postMessage: (message: unknown): void => {
      this.isReady ||= (message as { readonly op: string }).op === 'ready';
      this.#send(this.#owner, (copy) => this.#listeners.get('message')?.(copy), message);
    },
    on: (_event: 'message', listener: Listener): void => void (this.#onMessage = listener),
  };

  /** What the process has of it. */
  readonly worker = {
    postMessage: (message: unknown): void =>
      this.#send(this.thread, (copy) => this.#onMessage(copy), message),
    on: (event: string, listener: Listener): void => void this.#listeners.set(event, listener),
    ref(): void {},
    unref(): void {},
    terminate: (): Promise<void> => {
      this.end();
      return Promise.resolve();
    },
  };

  end(): void {
    if (this.thread.isCrashed) return;
    this.thread.crash();
    this.#send(this.#owner, (code) => this.#listeners.get('exit')?.(code), 1);
  }

  /** What is sent stays in order. */
  #send(to: SimulatedProcess, receive: Listener, message: unknown): void {
    const { world, random } = this.#owner;
    const copy: unknown = structuredClone(message);
    this.#lastArrival = Math.max(this.#lastArrival, world.now + random.next() * MESSAGE_MS);
    to.deliver(this.#lastArrival, () => receive(copy));
  }
}
