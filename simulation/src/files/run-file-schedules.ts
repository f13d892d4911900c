import type { ScheduleOptions, SimulationReport } from '../run-schedules.ts';
import { FileSchedule } from './file-schedule.ts';
import { FileWorkers } from './file-workers.ts';

/** Runs schedules of processes that share a folder of `@locks/file`, one after the other, each from its own seed. */
export async function runFileSchedules(
  options: Omit<ScheduleOptions, 'backend' | 'variant'>,
): Promise<SimulationReport> {
  const { seed, schedules, seconds = Infinity, mostViolations = 3, planted } = options;
  using workers = await FileWorkers.load(planted);
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const elapsed = (): number => (performance.now() - startedAt) / 1_000;
  const faults: Record<string, number> = {};
  const violations: SimulationReport['violations'][number][] = [];
  let steps = 0;
  let done = 0;
  while (done < schedules && elapsed() < seconds && violations.length < mostViolations) {
    const result = new FileSchedule(workers, seed + done).run();
    if (result.violation !== undefined) {
      const { timeline } = new FileSchedule(workers, seed + done, true).run();
      violations.push({ seed: seed + done, ...result.violation, timeline });
    }
    steps += result.steps;
    for (const [kind, count] of Object.entries(result.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    done += 1;
    // The threads send what they print.
    if (done % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(usedBefore);
  return {
    backend: 'file',
    seed,
    schedules: done,
    seconds: elapsed(),
    processorSeconds: (user + system) / 1e6,
    steps,
    faults,
    expected: [],
    lateWrites: { late: 0, stopped: 0 },
    violations,
  };
}
