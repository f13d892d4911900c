import { setTimeout as sleep } from 'node:timers/promises';
import type { Guarded } from './messages.ts';
import { CommandProcesses } from './processes.ts';

const LOOK_MS = 20;

/** The options of {@link CommandEnd}. */
export interface CommandEndOptions {
  /** Milliseconds for which the lease is certain. */
  readonly leftMs: () => number;
  /** Called before the first signal is sent. */
  readonly onEnd: () => void;
  /** Called when SIGKILL was sent. */
  readonly onKill?: () => void;
}

/**
 * Ends a command before the store can give its lock to anyone else: SIGTERM while a part of the lease is left, SIGKILL at its
 * end. The guardian sends these signals, and `locks` itself a little later, in case the guardian is dead.
 */
export class CommandEnd {
  readonly #options: CommandEndOptions;
  #guarded: Guarded | undefined;
  #processes: CommandProcesses | undefined;
  /** The latest time of SIGKILL, fixed once SIGTERM was sent: a renewal no longer moves it. */
  #killAt = Number.POSITIVE_INFINITY;
  #begun = false;
  #killed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CommandEndOptions) {
    this.#options = options;
  }

  /** `true` once the end of the command has begun. */
  get hasBegun(): boolean {
    return this.#begun;
  }

  guard(guarded: Guarded): void {
    this.#guarded = guarded;
    this.#processes = new CommandProcesses(guarded.id);
    this.plan();
  }

  set group(group: number) {
    if (this.#processes !== undefined) this.#processes.group = group;
  }

  /** Sets the timer of the next signal. A process that was stopped finds the time over when it resumes. */
  plan(): void {
    clearTimeout(this.#timer);
    if (this.#guarded === undefined) return;
    const { termBeforeMs, killBeforeMs } = this.#guarded;
    const leftMs = Math.min(this.#options.leftMs(), this.#killAt - performance.now() + killBeforeMs);
    if (leftMs === Number.POSITIVE_INFINITY) return;
    if (leftMs <= killBeforeMs) return this.kill();
    if (leftMs <= termBeforeMs) this.ask();
    const nextMs = leftMs - (this.#begun ? killBeforeMs : termBeforeMs);
    this.#timer = setTimeout(() => this.plan(), Math.min(nextMs, 1_000));
  }

  /** Sends SIGTERM, unless it was sent before. */
  ask(): void {
    if (this.#begun) return;
    this.#begin();
    this.#processes?.askToEnd();
  }

  /** Notes that the other process has sent SIGTERM, or is about to. */
  wasAsked(): void {
    if (!this.#begun) this.#begin();
  }

  kill(): void {
    if (!this.#begun) this.#begin();
    this.#processes?.kill();
    this.#killed = true;
    this.#options.onKill?.();
  }

  /** Waits until all processes that were asked to end are gone, or SIGKILL was sent. */
  async finish(): Promise<void> {
    while (!this.#killed && this.#processes?.areLeft === true) {
      this.plan();
      await sleep(LOOK_MS);
    }
    this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#guarded = undefined;
  }

  #begin(): void {
    this.#begun = true;
    const leftMs = this.#options.leftMs();
    this.#killAt = performance.now() + leftMs - (this.#guarded?.killBeforeMs ?? 0);
    // `onEnd` is called before the signal, so that an observer of the command's end can learn the reason.
    this.#options.onEnd();
  }
}
