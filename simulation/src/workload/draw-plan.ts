import { SeededRandom } from '../kernel/seeded-random.ts';
import type { NetworkOptions } from '../network/link.ts';
import type {
  BackendKind,
  FaultPlan,
  OperationKind,
  OperationPlan,
  Plan,
  ResourcePlan,
  StoreFaultPlan,
} from './plan.ts';

/** Half a per cent: two clocks run apart by 1 % at most, which is what the margin of a lease allows for. */
const MOST_DRIFT = 0.005;
/** To compare every script with the rules takes longer than to run it. */
const REFINED_PART = 0.25;
const KINDS: readonly OperationKind[] = [
  ...['acquire', 'acquire', 'acquire', 'acquire', 'try', 'run', 'run', 'all'],
] as OperationKind[];

/** Draws a run from a seed. */
export function drawPlan(backend: BackendKind, seed: number): Plan {
  const random = new SeededRandom(seed);
  const stores = backend === 'quorum' ? 3 : 1;
  const resources = drawResources(random, backend);
  // An operator who takes locks away makes some promises void: only few runs have one.
  const hasOperator = random.chance(0.12);
  const processes = Array.from({ length: random.between(1, 3) }, (_, process) => ({
    name: `p${process}`,
    drift: drift(random),
    wallOffset: random.between(-5_000, 5_000),
    clients: Array.from({ length: random.between(1, 3) }, (__, client) => ({
      name: `p${process}.c${client}`,
      operations: Array.from({ length: random.between(1, 3) }, () =>
        drawOperation(random, resources, hasOperator),
      ),
    })),
  }));
  const faultsEndAt = random.between(200, 2_500);
  return {
    backend,
    seed,
    resources,
    processes,
    storeDrifts: Array.from({ length: stores }, () => drift(random)),
    network: drawNetwork(random, backend),
    faults: drawFaults(random, processes.length, stores, faultsEndAt),
    faultsEndAt,
    storeFaults: backend === 'redis' ? drawStoreFaults(random, faultsEndAt) : [],
    replicaLagMs: random.pick([0.2, 5, 50, 300]),
    claimMs: random.pick([100, 300, 2_000, 2_000]),
    checkIntervalMs: random.pick([100, 300, 1_000, 1_000]),
    refines: backend === 'redis' && random.chance(REFINED_PART),
  };
}

/** In a part of the runs Redis itself has faults. */
function drawStoreFaults(random: SeededRandom, endAt: number): StoreFaultPlan[] {
  if (!random.chance(0.25)) return [];
  return Array.from({ length: random.between(1, 2) }, (): StoreFaultPlan => {
    const at = random.between(0, endAt);
    const downMs = Math.min(random.pick([5, 50, 500]), endAt - at);
    switch (random.between(0, 4)) {
      case 0:
        return { at, kind: 'restart', keepsData: true, downMs };
      case 1:
        return { at, kind: 'restart', keepsData: false, downMs };
      case 2:
        return { at, kind: 'failover', downMs };
      case 3:
        return { at, kind: 'slot migration', ms: Math.min(random.pick([50, 300, 1_000]), endAt - at) };
      default:
        return { at, kind: 'eviction' };
    }
  });
}

/** At its limits as often as not: that is where a margin fails. */
function drift(random: SeededRandom): number {
  return random.chance(0.5) ? random.pick([-MOST_DRIFT, MOST_DRIFT]) : (random.next() * 2 - 1) * MOST_DRIFT;
}

function drawResources(random: SeededRandom, backend: BackendKind): ResourcePlan[] {
  return Array.from({ length: random.pick([1, 1, 2]) }, (_, index) => {
    // A quorum has no permits.
    const hasPermits = backend !== 'quorum' && random.chance(0.3);
    return { name: `r${index}`, permits: hasPermits ? random.between(1, 4) : undefined };
  });
}

function drawOperation(
  random: SeededRandom,
  resources: readonly ResourcePlan[],
  hasOperator: boolean,
): OperationPlan {
  const kind: OperationKind =
    hasOperator && random.chance(0.25)
      ? random.pick(['steal', 'force-release', 'resize'])
      : random.pick(KINDS);
  const first = random.between(0, resources.length - 1);
  const ttlMs = random.pick([60, 150, 400, 1_000]);
  const permits = resources[first]?.permits ?? 1;
  const mode = random.chance(0.6) ? 'exclusive' : 'shared';
  const during = random.chance(0.6)
    ? 'nothing'
    : random.pick(['renew', 'extend', 'shorten', 'downgrade', 're-enter'] as const);
  return {
    kind,
    afterMs: random.chance(0.3) ? 0 : random.between(0, 150),
    resources: kind === 'all' ? resources.map((_, index) => index) : [first],
    mode,
    weight: random.between(1, permits),
    isOdd: random.chance(0.04),
    // Who waits for more than there is would wait for ever.
    limit: random.between(permits, permits + 2),
    ttlMs,
    waitMs: random.pick([50, 300, 1_000, 10_000, Infinity, Infinity]),
    renewal: random.chance(0.7) ? 'auto' : 'manual',
    holdMs: random.pick([0, random.between(0, 20), random.between(0, ttlMs * 2)]),
    during,
    end: random.pick(['release', 'release', 'release', 'release', 'release twice', 'forget'] as const),
    abortAfterMs: random.chance(0.12) ? random.between(0, 300) : undefined,
  };
}

function drawNetwork(random: SeededRandom, backend: BackendKind): NetworkOptions {
  const rate = (): number => (random.chance(0.5) ? 0 : random.next() * 0.15);
  const isSound = random.chance(0.3);
  return {
    latencyMs: random.pick([0.05, 0.5, 3]),
    // A client of Redis has one connection for its commands; those of other stores have pools.
    ordered: random.chance(0.5) || backend === 'redis',
    slow: isSound ? 0 : rate(),
    slowMs: random.pick([20, 200, 1_500]),
    lostRequests: isSound ? 0 : rate(),
    lostReplies: isSound ? 0 : rate(),
    resent: isSound ? 0 : rate(),
    lostPushes: isSound ? 0 : rate() * 4,
  };
}

function drawFaults(random: SeededRandom, processes: number, stores: number, endAt: number): FaultPlan[] {
  if (random.chance(0.35)) return [];
  const faults = Array.from({ length: random.between(1, 4) }, (): FaultPlan => {
    const at = random.between(0, endAt);
    const process = random.between(0, processes - 1);
    const store = random.between(0, stores - 1);
    const ms = Math.min(random.pick([20, 100, 500, 1_500]), endAt - at);
    switch (random.between(0, 8)) {
      case 8:
        return { at, process, kind: 'sleep', ms: random.pick([80, 300, 1_200]) };
      case 0:
      case 1:
        return { at, process, kind: 'pause', ms: random.pick([5, 80, 300, 1_200]) };
      case 2:
        return { at, process, kind: 'crash' };
      case 3:
        return { at, process, kind: 'wall clock', ms: random.pick([-3_600_000, -100, 100, 3_600_000]) };
      case 4:
        return { at, process, kind: 'reset', store };
      case 5:
        return { at, process, kind: 'store away', store, ms };
      case 6:
        return { at, process, kind: 'close', drainMs: random.pick([0, 0, 100, 1_000]) };
      default:
        return {
          at,
          process,
          kind: 'partition',
          store,
          direction: random.pick(['requests', 'replies', 'both']),
          ms,
        };
    }
  });
  const sleeps = faults.some(({ kind }) => kind === 'sleep');
  // A wall clock that is set back before anybody has looked at it hides that the machine slept.
  return faults.filter((fault) => !(sleeps && fault.kind === 'wall clock' && fault.ms < 0));
}
