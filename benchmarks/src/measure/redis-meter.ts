import type { Redis } from 'ioredis';
import type { Meter } from './meter.ts';
import { countRequests } from './monitor-tap.ts';

/** `MONITOR` for counts; `INFO commandstats` and `INFO cpu` for times. */
export function redisMeter(control: Redis): Meter {
  return {
    count: (work) => countRequests(control, work),
    async watch() {
      const before = await readServerTimes(control);
      return async (sent) => {
        const after = await readServerTimes(control);
        return { commandMicros: spentOn(sent, before, after), cpuMicros: after.cpu - before.cpu };
      };
    },
  };
}

/** What the server has spent so far, in microseconds. */
interface ServerTimes {
  /** By command; a script's own commands are counted under their names too. */
  readonly byCommand: ReadonlyMap<string, number>;
  /** Processor time of the whole server, reading and writing of sockets included. */
  readonly cpu: number;
}

async function readServerTimes(control: Redis): Promise<ServerTimes> {
  const [stats, cpu] = await Promise.all([control.info('commandstats'), control.info('cpu')]);
  const byCommand = new Map<string, number>();
  for (const [, name, micros] of stats.matchAll(/^cmdstat_([^:]+):calls=\d+,usec=(\d+)/gm)) {
    byCommand.set(name as string, Number(micros));
  }
  const seconds = [...cpu.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].map(([, value]) => Number(value));
  return { byCommand, cpu: 1e6 * seconds.reduce((sum, value) => sum + value, 0) };
}

/** The time spent between two readings in the commands that clients sent; a script's time includes what it calls. */
function spentOn(sent: Iterable<string>, before: ServerTimes, after: ServerTimes): number {
  let micros = 0;
  for (const name of sent) micros += (after.byCommand.get(name) ?? 0) - (before.byCommand.get(name) ?? 0);
  return micros;
}
