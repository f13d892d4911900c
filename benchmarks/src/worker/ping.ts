import type { Session } from '../contenders/contender.ts';
import { dwell } from '../measure/clock.ts';
import { median } from '../measure/quantiles.ts';
import type { Pings } from './methods.ts';

/** The round trip of `PING`: one after the other, and each after a rest as long as a critical section. */
export async function measurePings(session: Session, count: number, restMs: number): Promise<Pings> {
  const at = async (): Promise<number> => {
    const sentAt = performance.now();
    await session.ping();
    return performance.now() - sentAt;
  };
  const busy: number[] = [];
  const rested: number[] = [];
  for (let index = 0; index < count; index += 1) busy.push(await at());
  for (let index = 0; index < count; index += 1) {
    await dwell(restMs);
    rested.push(await at());
  }
  return { busyMs: median(busy), restedMs: median(rested), leastMs: Math.min(...busy, ...rested) };
}
