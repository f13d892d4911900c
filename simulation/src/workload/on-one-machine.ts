import { SeededRandom } from '../kernel/seeded-random.ts';
import { INTERRUPTED_AT } from '../sqlite/interruption.ts';
import type { FaultPlan, Plan, SqlitePlan } from './plan.ts';

/** What random numbers are for. */
const MACHINE = 11;
const SOUND = { latencyMs: 0.1, ordered: true, slow: 0, lostRequests: 0, lostReplies: 0, resent: 0 } as const;
/** A client counts as dead after 2 s. */
const SILENT_MS = 2_600;
const LONG_MS = 2_000;
/** Most interruptions meet no transaction, or one that matters little: they come in groups. */
const MORE_INTERRUPTIONS = 3;

/**
 * The same run on one machine: its processes share the clocks, and no network is between them. What befalls a network in other runs
 * befalls a process in the middle of a transaction here, or the file.
 */
export function onOneMachine(plan: Plan): Plan {
  const random = new SeededRandom(plan.seed).fork(MACHINE);
  const [first] = plan.processes;
  return {
    ...plan,
    processes: plan.processes.map((process) => ({
      ...process,
      drift: first?.drift ?? 0,
      wallOffset: first?.wallOffset ?? 0,
    })),
    network: { ...plan.network, ...SOUND },
    faults: plan.faults.flatMap((fault) => onMachine(fault, plan, random)),
    sqlite: drawSqlitePlan(plan, random),
  };
}

function drawSqlitePlan(plan: Plan, random: SeededRandom): SqlitePlan {
  // Slow polls matter after some twenty of them.
  const isSlow = plan.faults.length === 0 && random.chance(waitsLong(plan) ? 0.7 : 0.1);
  return {
    platform: random.chance(0.8) ? 'linux' : 'win32',
    hasEarlierBoot: random.chance(0.1),
    slowPollsMs: plan.processes.map(() => (isSlow && random.chance(0.6) ? random.pick([120, 250]) : 0)),
  };
}

/** Whether somebody may be silent for so long in the queue that it is passed over. */
function waitsLong({ processes }: Plan): boolean {
  return processes.some(({ clients }) =>
    clients.some(({ operations }) => operations.some(({ holdMs }) => holdMs > LONG_MS)),
  );
}

function onMachine(fault: FaultPlan, plan: Plan, random: SeededRandom): FaultPlan[] {
  switch (fault.kind) {
    case 'pause':
      if (waitsLong(plan) && random.chance(0.6)) return [{ ...fault, ms: SILENT_MS }];
      if (random.chance(0.5)) return interruptions(fault, plan.faultsEndAt, random);
      return [random.chance(0.2) ? { ...fault, ms: SILENT_MS } : fault];
    case 'reset':
      return interruptions(fault, plan.faultsEndAt, random);
    case 'crash':
      return [random.chance(0.5) ? interruption(fault, true, random) : fault];
    case 'partition':
      return [interruption(fault, true, random)];
    default:
      return [fault];
  }
}

function interruptions({ at, process }: FaultPlan, endAt: number, random: SeededRandom): FaultPlan[] {
  const later = Array.from({ length: MORE_INTERRUPTIONS }, () => random.between(0, endAt));
  return [at, ...later].map((one) => interruption({ at: one, process }, false, random));
}

function interruption(
  { at, process }: Pick<FaultPlan, 'at' | 'process'>,
  kills: boolean,
  random: SeededRandom,
): FaultPlan {
  const point = random.pick(INTERRUPTED_AT);
  const ms = random.pick(kills ? [0, 0, 300] : [5, 80, 300, 1_200, SILENT_MS]);
  return { at, process, kind: 'in a transaction', point, ms, kills };
}
