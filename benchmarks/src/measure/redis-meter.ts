import type { Redis } from 'ioredis';
import { readServerTimes, spentOn } from './command-stats.ts';
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
