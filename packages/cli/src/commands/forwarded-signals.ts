import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

/** Signals that the command gets when `locks` gets them. */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;
/** The forwarded signals that end a wait for the lock. */
const ENDING = new Set<NodeJS.Signals>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);

/** The signals of this process: they end a wait, and then go to the command. */
export class ForwardedSignals {
  /** The number of the signal that ended the wait. */
  number = 0;
  readonly #waiting = new AbortController();
  #child: ChildProcess | undefined;
  readonly #listeners = new Map<NodeJS.Signals, () => void>();

  constructor() {
    for (const signal of FORWARDED) this.#on(signal, () => this.#receive(signal));
    // A stopped `locks` renews nothing: it goes on when the terminal asks it to stop.
    this.#on('SIGTSTP', () => undefined);
  }

  /** Aborts when a signal comes that ends the wait for the lock. */
  get endOfWait(): AbortSignal {
    return this.#waiting.signal;
  }

  /** Sends all further signals to the process group of the command. */
  forwardTo(child: ChildProcess): void {
    this.#child = child;
  }

  /** Runs a wait that signals can end; gives `undefined` where one did. */
  async duringWait<T>(wait: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { signal } = this.#waiting;
    try {
      return await wait(signal);
    } catch (error) {
      if (signal.aborted && error === signal.reason) return undefined;
      throw error;
    }
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #on(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  #receive(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      if (!ENDING.has(signal) || this.#waiting.signal.aborted) return;
      this.number = constants.signals[signal];
      this.#waiting.abort();
      return;
    }
    try {
      process.kill(-pid, signal);
    } catch {
      // The process group has ended.
    }
  }
}
