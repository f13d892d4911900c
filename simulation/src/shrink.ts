import type { LockCode } from './process/lock-code.ts';
import { Simulation } from './simulation.ts';
import type { ClientPlan, OperationPlan, Plan, ProcessPlan } from './workload/plan.ts';

const MOST_RUNS = 600;

/** A smaller plan that fails for the same reason, made by leaving out one part after another. */
export async function shrink(code: LockCode, plan: Plan, clause: string): Promise<Plan> {
  let smallest = plan;
  let runs = 0;
  for (let hasShrunk = true; hasShrunk && runs < MOST_RUNS; ) {
    hasShrunk = false;
    for (const candidate of smallerPlans(smallest)) {
      if ((runs += 1) > MOST_RUNS) break;
      const { violations } = await new Simulation(code, candidate).run();
      if (violations[0]?.clause !== clause) continue;
      smallest = candidate;
      hasShrunk = true;
      break;
    }
  }
  return smallest;
}

/** Plans with a part less, those with the largest part left out first. */
function* smallerPlans(plan: Plan): Generator<Plan> {
  const { processes, faults, storeFaults, network, record } = plan;
  const withProcess = (index: number, process: ProcessPlan): Plan => ({
    ...plan,
    processes: processes.with(index, process),
  });
  for (const [index, process] of processes.entries())
    if (process.clients.length > 0) yield withProcess(index, { ...process, clients: [] });
  for (const index of faults.keys()) yield { ...plan, faults: faults.toSpliced(index, 1) };
  for (const index of storeFaults.keys()) yield { ...plan, storeFaults: storeFaults.toSpliced(index, 1) };
  for (const kind of ['slow', 'lostRequests', 'lostReplies', 'resent', 'lostPushes'] as const)
    if (network[kind] > 0) yield { ...plan, network: { ...network, [kind]: 0 } };
  for (const kind of ['stale', 'failed', 'vainPushes', 'retries'] as const)
    if (record !== undefined && record[kind] > 0) yield { ...plan, record: { ...record, [kind]: 0 } };
  for (const [index, process] of processes.entries()) {
    const { clients } = process;
    const withClient = (at: number, client: ClientPlan): Plan =>
      withProcess(index, { ...process, clients: clients.with(at, client) });
    for (const [at, client] of clients.entries()) {
      yield withProcess(index, { ...process, clients: clients.toSpliced(at, 1) });
      const { operations } = client;
      for (const [place, operation] of operations.entries()) {
        if (operations.length > 1)
          yield withClient(at, { ...client, operations: operations.toSpliced(place, 1) });
        const simpler = simplerOperation(operation);
        if (simpler !== undefined)
          yield withClient(at, { ...client, operations: operations.with(place, simpler) });
      }
    }
  }
  if (!network.ordered) yield { ...plan, network: { ...network, ordered: true } };
  if ([...faults, ...storeFaults].every(({ at }) => at < plan.faultsEndAt / 2) && plan.faultsEndAt > 50)
    yield { ...plan, faultsEndAt: Math.floor(plan.faultsEndAt / 2) };
}

function simplerOperation(operation: OperationPlan): OperationPlan | undefined {
  if (operation.during !== 'nothing') return { ...operation, during: 'nothing' };
  if (operation.abortAfterMs !== undefined) return { ...operation, abortAfterMs: undefined };
  if (operation.end === 'release twice' || operation.end === 'transfer')
    return { ...operation, end: 'release' };
  if (operation.holdMs > 20) return { ...operation, holdMs: Math.floor(operation.holdMs / 2) };
  if (operation.afterMs > 20) return { ...operation, afterMs: Math.floor(operation.afterMs / 2) };
  return undefined;
}
