import { setTimeout as sleep } from 'node:timers/promises';
import type { Guarded } from './messages.ts';
import { CommandProcesses } from './processes.ts';

const LOOK_MS = 20;

/** What the end of a command depends on, and who is told of it. */
export interface CommandEndOptions {
  /** Milliseconds for which the lease is certain. */
  readonly leftMs: () => number;
  /** Called before the first signal is sent. */
  readonly onEnd: () => void;
  /** Called when SIGKILL was sent. */
  readonly onKill?: () => void;
}

/**
 * Ends a command before the store can give its lock to anyone else: SIGTERM while a part of the lease is left, SIGKILL at its end.
 * The guardian does so, and `locks` itself a little later, in case the guardian does not live.
 */
export class CommandEnd {
  readonly #options: CommandEndOptions;
  #guarded: Guarded | undefined;
  #processes: CommandProcesses | undefined;
  /** When SIGKILL comes at the latest, once SIGTERM was sent: a renewal no longer helps. */
  #killAt = Number.POSITIVE_INFINITY;
  #begun = false;
  #killed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CommandEndOptions) {
    this.#options = options;
  }

  /** The command is being ended. */
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

  /** Sets the timer for what comes next. A process that was stopped finds its time over when it goes on. */
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

  /** Sends SIGTERM, unless that was done. */
  ask(): void {
    if (this.#begun) return;
    this.#begin();
    this.#processes?.askToEnd();
  }

  /** The other process has sent SIGTERM, or is about to. */
  wasAsked(): void {
    if (!this.#begun) this.#begin();
  }

  kill(): void {
    if (!this.#begun) this.#begin();
    this.#processes?.kill();
    this.#killed = true;
    this.#options.onKill?.();
  }

  /** Waits until none of the processes is left that were asked to end, or SIGKILL was sent. */
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
    // Before the signal: whoever sees that the command has ended can learn why.
    this.#options.onEnd();
  }
}
