import { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { LoadedLocks, LockCode } from '../process/lock-code.ts';
import { SimulatedProcess } from '../process/simulated-process.ts';
import type { Plan } from '../workload/plan.ts';
import { NetworkedEtcd } from './networked-etcd.ts';
import { NetworkedMysql } from './networked-mysql.ts';
import { NetworkedPostgres } from './networked-postgres.ts';
import { NetworkedRecord } from './networked-record.ts';
import { NetworkedRedis } from './networked-redis.ts';
import { NetworkedZookeeper } from './networked-zookeeper.ts';
import { NetworkedRules } from './networked-rules.ts';
import { NetworkedSqlite } from './networked-sqlite.ts';
import { RulesStore } from './rules-store.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** The stores of a run: one, or the nodes of a quorum. */
export function makeStores(world: World, code: LockCode, plan: Plan): SimulatedStore[] {
  const { lua } = code;
  if (plan.backend === 'mysql')
    return plan.storeDrifts.map((drift) => new NetworkedMysql(world, plan, drift));
  if (plan.backend === 'etcd') return plan.storeDrifts.map((drift) => new NetworkedEtcd(world, plan, drift));
  if (plan.backend === 'zookeeper')
    return plan.storeDrifts.map((drift) => new NetworkedZookeeper(world, plan, drift));
  if (plan.backend === 'sqlite') return [new NetworkedSqlite(world, plan)];
  const { record } = plan;
  if (record !== undefined)
    return plan.storeDrifts.map((drift) => new NetworkedRecord(world, plan, record, drift));
  // The code of a store runs in a process of its own.
  const server = code.serverCode(
    () =>
      new SimulatedProcess(world, new SeededRandom(0), {
        name: 'store',
        drift: 0,
        wallOffset: 0,
        timerLatenessMs: 0,
      }),
  );
  const { postgres } = code;
  if (postgres !== undefined) {
    postgres.reset(code.schemaOf(server));
    return plan.storeDrifts.map((drift) => new NetworkedPostgres(world, plan, drift, postgres));
  }
  const { LockRules, scripts = {} } = server;
  if (plan.backend === 'redis' && lua !== undefined) {
    const scriptNames = (code.scriptNames ??= namesOf(scripts));
    const sources = Object.values(scripts).map(({ source }) => source);
    return plan.storeDrifts.map(
      (drift) => new NetworkedRedis(world, { plan, drift, lua, scriptNames, sources }),
    );
  }
  return plan.storeDrifts.map((drift, index) => {
    const name = plan.storeDrifts.length === 1 ? 'store' : `store${index}`;
    return new NetworkedRules(new RulesStore(world, name, drift, LockRules));
  });
}

/** The names of the scripts' files without `.lua`, by their hashes and by their sources. */
function namesOf(scripts: NonNullable<LoadedLocks['scripts']>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(scripts).flatMap(([camel, { sha1, source }]) => {
      const name = camel.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return [
        [sha1, name],
        [source, name],
      ];
    }),
  );
}
