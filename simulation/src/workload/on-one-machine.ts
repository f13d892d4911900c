import { SeededRandom } from '../kernel/seeded-random.ts';
import { INTERRUPTED_AT } from '../sqlite/process-files.ts';
import type { FaultPlan, Plan, SqlitePlan } from './plan.ts';

/** What random numbers are for. */
const MACHINE = 11;
const SOUND = { latencyMs: 0.1, ordered: true, slow: 0, lostRequests: 0, lostReplies: 0, resent: 0 } as const;

/**
 * The same run on one machine: its processes share the clocks, and no network is between them. What befalls a network in other runs
 * befalls a process in the middle of a transaction here, or the file.
 */
export function onOneMachine(plan: Plan): Plan {
  const random = new SeededRandom(plan.seed).fork(MACHINE);
  const [{ drift = 0, wallOffset = 0 } = {}] = plan.processes;
  const faults = plan.faults.map((fault) => onMachine(fault, random));
  return {
    ...plan,
    processes: plan.processes.map((process) => ({ ...process, drift, wallOffset })),
    network: { ...plan.network, ...SOUND },
    faults,
    sqlite: drawSqlitePlan(plan, random),
  };
}

function drawSqlitePlan({ processes, faults, maxPollMs }: Plan, random: SeededRandom): SqlitePlan {
  const isSlow = faults.length === 0 && maxPollMs > 100 && random.chance(0.1);
  return {
    platform: random.chance(0.8) ? 'linux' : 'win32',
    hasEarlierBoot: random.chance(0.1),
    slowPollsMs: processes.map(() => (isSlow && random.chance(0.6) ? random.pick([60, 150]) : 0)),
  };
}

function onMachine(fault: FaultPlan, random: SeededRandom): FaultPlan {
  const { at, process } = fault;
  const inTransaction = (kills: boolean): FaultPlan => ({
    at,
    process,
    kind: 'in a transaction',
    point: random.pick(INTERRUPTED_AT),
    ms: random.pick(kills ? [0, 0, 300] : [5, 80, 300, 1_200, 2_600]),
    kills,
  });
  switch (fault.kind) {
    case 'pause':
      if (random.chance(0.5)) return inTransaction(false);
      return random.chance(0.2) ? { ...fault, ms: 2_600 } : fault;
    case 'reset':
      return inTransaction(false);
    case 'partition':
      return inTransaction(true);
    case 'crash':
      return random.chance(0.5) ? inTransaction(true) : fault;
    default:
      return fault;
  }
}
