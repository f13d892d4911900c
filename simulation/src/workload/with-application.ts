import { SeededRandom } from '../kernel/seeded-random.ts';
import { APPLICATION_ACTS, type FaultPlan, type Plan } from './plan.ts';

/** What the random numbers are for. */
const APPLICATION = 57;
/** The part of the runs of Redis in which the application uses the client of the locks for itself. */
const SHARED_PART = 0.12;
const NOTHING_FAILS = { slow: 0, lostRequests: 0, lostReplies: 0, resent: 0, lostPushes: 0 } as const;

/** The same run, in some of those of Redis with an application that sends commands of its own by the client of the locks. */
export function withApplication(plan: Plan): Plan {
  const random = new SeededRandom(plan.seed).fork(APPLICATION);
  if (plan.backend !== 'redis' || !random.chance(SHARED_PART)) return plan;
  const { faultsEndAt } = plan;
  const kinds = random.chance(0.5) ? APPLICATION_ACTS : [random.pick(APPLICATION_ACTS)];
  const acts = Array.from({ length: random.between(1, 8) }, (): FaultPlan => {
    const at = random.between(0, Math.min(faultsEndAt, 800));
    return {
      at,
      process: random.between(0, plan.processes.length - 1),
      kind: 'application',
      act: random.pick(kinds),
      ms: Math.min(random.pick([1, 10, 40, 100, 500]), faultsEndAt - at),
    };
  });
  const isAlone = random.chance(0.6);
  return {
    ...plan,
    faults: isAlone ? acts : [...plan.faults, ...acts],
    storeFaults: [],
    network: isAlone ? { ...plan.network, ...NOTHING_FAILS } : plan.network,
    looksAtLeases: random.chance(0.7),
  };
}
