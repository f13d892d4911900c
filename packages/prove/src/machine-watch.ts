import { machineNow } from '@locks/core/conformance/process';
import type { Span } from './judge/run-record.ts';

const TICK_MS = 50;
const STALL_MS = 40;

/** Notes when this process, and most likely the whole machine, stood still. */
export class MachineWatch implements Disposable {
  readonly stalls: Span[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor() {
    let before = machineNow();
    this.#timer = setInterval(() => {
      const now = machineNow();
      if (now - before > TICK_MS + STALL_MS) this.stalls.push({ from: before, until: now });
      before = now;
    }, TICK_MS);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
