import { countRuns, type ScheduleOptions, type SimulationReport } from '../run-schedules.ts';
import { FileSchedule } from './file-schedule.ts';
import { FileWorkers } from './file-workers.ts';

/** Runs schedules of processes that share a folder of `@locks/file`, one after the other, each from its own seed. */
export async function runFileSchedules(
  options: Omit<ScheduleOptions, 'backend' | 'variant'>,
): Promise<SimulationReport> {
  using workers = await FileWorkers.load(options.planted);
  const figures = await countRuns(options, async (seed) => {
    // The threads send what they print.
    if (seed % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    const result = new FileSchedule(workers, seed).run();
    if (result.violation === undefined) return { ...result, violation: undefined };
    const { timeline } = new FileSchedule(workers, seed, true).run();
    return { ...result, violation: { seed, ...result.violation, timeline } };
  });
  return { ...figures, backend: 'file', expected: [], lateWrites: { late: 0, stopped: 0 } };
}
