import { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { LockCode } from '../process/lock-code.ts';
import { SimulatedProcess } from '../process/simulated-process.ts';
import type { Plan } from '../workload/plan.ts';
import { NetworkedRedis } from './networked-redis.ts';
import { NetworkedRules } from './networked-rules.ts';
import { RulesStore } from './rules-store.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** The stores of a run: one, or the nodes of a quorum. */
export function makeStores(world: World, code: LockCode, plan: Plan): SimulatedStore[] {
  const { lua } = code;
  if (plan.backend === 'redis' && lua !== undefined)
    return plan.storeDrifts.map((drift) => new NetworkedRedis(world, drift, lua));
  // The rules run in a process of their own.
  const { LockRules } = code.serverCode(
    () =>
      new SimulatedProcess(world, new SeededRandom(0), {
        name: 'store',
        drift: 0,
        wallOffset: 0,
        timerLatenessMs: 0,
      }),
  );
  return plan.storeDrifts.map((drift, index) => {
    const name = plan.storeDrifts.length === 1 ? 'store' : `store${index}`;
    return new NetworkedRules(new RulesStore(world, name, drift, LockRules));
  });
}
