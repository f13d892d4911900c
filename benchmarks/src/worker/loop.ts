import type { Session } from '../contenders/contender.ts';
import type { LoopResult, LoopTask } from './methods.ts';

/** Uncontended: every lane acquires and releases its own name, one after the other. */
export async function loop(session: Session, { names, forMs }: LoopTask): Promise<LoopResult> {
  const waits: number[] = [];
  const wholes: number[] = [];
  const cpuBefore = process.threadCpuUsage();
  const startedAt = performance.now();
  const endAt = startedAt + forMs;
  const lane = async (name: string): Promise<void> => {
    let now = performance.now();
    while (now < endAt) {
      const release = await session.acquire(name);
      waits.push(performance.now() - now);
      await release();
      const startedPairAt = now;
      now = performance.now();
      wholes.push(now - startedPairAt);
    }
  };
  await Promise.all(names.map(lane));
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.threadCpuUsage(cpuBefore);
  return {
    pairs: waits.length,
    elapsedMs,
    cpuMicros: user + system,
    waits: Float64Array.from(waits),
    wholes: Float64Array.from(wholes),
  };
}
