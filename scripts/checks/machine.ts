import { readFileSync } from 'node:fs';

/** What kept this machine from its work since the watch began. */
export interface Disturbance {
  /** The longest time that this process, which mostly waits, did not get a processor, in milliseconds. */
  readonly stalledMs: number;
  /** The share of all processor time that the host gave to others: 0 where the system does not report it. */
  readonly stolen: number;
}

const INTERVAL_MS = 20;

/** Tests with bounds of 300 ms and more fail on a machine that stands still for so long. */
const STALLED_MS = 250;
const STOLEN = 0.1;

/** Whether a missed bound of time says more about the machine than about what was tested. */
export function isDisturbed({ stalledMs, stolen }: Disturbance): boolean {
  return stalledMs >= STALLED_MS || stolen >= STOLEN;
}

/** Watches the machine until the returned function is called. */
export function watchMachine(): () => Disturbance {
  const before = processorTimes();
  let stalledMs = 0;
  let last = performance.now();
  const look = (): void => {
    const now = performance.now();
    stalledMs = Math.max(stalledMs, now - last - INTERVAL_MS);
    last = now;
  };
  const timer = setInterval(look, INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    look();
    const after = processorTimes();
    const all = after.all - before.all;
    return { stalledMs, stolen: all > 0 ? (after.stolen - before.stolen) / all : 0 };
  };
}

/** The processor times of Linux since its start, in ticks; the eighth is what the host gave to others. */
function processorTimes(): { readonly all: number; readonly stolen: number } {
  try {
    const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
    const ticks = line.split(/\s+/).slice(1, 9).map(Number);
    return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
  } catch {
    return { all: 0, stolen: 0 };
  }
}
