// Own code: turbo and vitest measure wall time only.
import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';

/** The ticks of a second in /proc, on every Linux that Node runs on. */
const TICKS = 100;

interface Meter {
  seconds: number;
}

const meters = new AsyncLocalStorage<Meter>();
let counted = 0;

/** Runs `work`; the processor time of the commands that it runs, in seconds: 0 where the system does not tell. */
export async function measured<T>(work: () => Promise<T>): Promise<{ result: T; processorSeconds: number }> {
  const meter: Meter = { seconds: 0 };
  const result = await meters.run(meter, work);
  return { result, processorSeconds: meter.seconds };
}

/**
 * To be called when a child has ended: the system has just added what it used, with all that it waited for, to the time of our
 * children. A server that outlives its parent is not in it.
 */
export function childEnded(): void {
  const now = secondsOfChildren();
  const meter = meters.getStore();
  if (meter) meter.seconds += now - counted;
  counted = now;
}

function secondsOfChildren(): number {
  try {
    // The name of the command, in brackets, may have spaces. After it, `cutime` and `cstime` are the 14th and 15th field.
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[13]) + Number(fields[14])) / TICKS;
  } catch {
    return 0;
  }
}

/** The share of all processor time that the host of this machine gives to others until the returned function is called: 0 where the system does not tell. */
export function watchStolen(): () => number {
  const before = processorTimes();
  return () => {
    const after = processorTimes();
    const all = after.all - before.all;
    return all > 0 ? (after.stolen - before.stolen) / all : 0;
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
