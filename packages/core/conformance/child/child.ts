import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CallableProcess } from '../process/callable-process.ts';
import type { Commands } from './protocol.ts';

/** A child process with a lock manager of its own. */
export class Child extends CallableProcess<Commands> {
  #wasDisturbed = false;

  readonly acquire = this.call.acquire;
  readonly tryAcquire = this.call.tryAcquire;
  readonly release = this.call.release;
  readonly renew = this.call.renew;
  readonly read = this.call.read;
  readonly untilAborted = this.call.untilAborted;
  readonly readAfterBlock = this.call.readAfterBlock;
  readonly abortedAfterBlock = this.call.abortedAfterBlock;
  readonly abortedBeforeNext = this.call.abortedBeforeNext;
  readonly acquireAndBlock = this.call.acquireAndBlock;
  readonly releaseAndBlock = this.call.releaseAndBlock;
  readonly contend = this.call.contend;
  readonly timers = this.call.timers;
  readonly keptOpen = this.call.keptOpen;
  readonly open = this.call.open;
  readonly untilThreadStopped = this.call.untilThreadStopped;
  readonly close = this.call.close;
  setWallClock: Commands['setWallClock'] = (...args) => {
    this.#wasDisturbed = true;
    return this.call.setWallClock(...args);
  };
  closeAndLinger: Commands['closeAndLinger'] = (...args) => {
    this.#wasDisturbed = true;
    return this.call.closeAndLinger(...args);
  };

  /** Starts a process that loads the harness `module`, as on a machine whose wall clock differs by `wallClockOffsetMs`. */
  static async start(module: string, wallClockOffsetMs = 0): Promise<Child> {
    const process = fork(mainModule(), [module, String(wallClockOffsetMs)], {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const child = new Child(process);
    await child.ready();
    return child;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** The exit code, or `undefined` while the process lives. */
  get exitCode(): number | undefined {
    return this.child.exitCode ?? undefined;
  }

  /** Whether another case can use the process: it lives, was never stopped, and has answered every call. */
  get isReusable(): boolean {
    return !this.#wasDisturbed && this.isUsable;
  }

  /** An idle process does not keep this process alive. */
  set isIdle(isIdle: boolean) {
    for (const handle of [this.child, this.child.channel]) {
      if (isIdle) handle?.unref();
      else handle?.ref();
    }
  }

  override freeze(): void {
    this.#wasDisturbed = true;
    super.freeze();
  }

  override kill(): Promise<void> {
    this.#wasDisturbed = true;
    return super.kill();
  }
}

/** The main module is located from the folder of the package: this file may be bundled into any file of it. */
function mainModule(): string {
  const manifest = createRequire(import.meta.url).resolve('@locks/core/package.json');
  return join(dirname(manifest), 'dist/conformance/child/main.js');
}
