import { SeededRandom } from '../kernel/seeded-random.ts';
import type { NetworkOptions } from '../network/link.ts';
import type {
  BackendKind,
  DuringHold,
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
/** Where operators take locks away, hardly another check tells what a script did. */
const REFINED_PART_WITH_OPERATORS = 0.7;
const LOOKED_AT_PART = 0.3;
const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];
const FAULT_KINDS: readonly FaultPlan['kind'][] = [
  ...['pause', 'pause', 'sleep', 'crash', 'wall clock', 'reset', 'store away', 'close', 'partition'],
] as FaultPlan['kind'][];
const STORE_FAULT_KINDS: Partial<Record<BackendKind, readonly StoreFaultPlan['kind'][]>> = {
  redis: ['restart', 'restart', 'failover', 'slot migration', 'eviction', 'script flush'],
  mysql: ['restart', 'failover', 'collisions', 'read-only'],
};

const TIDY_DURING = ['renew', 'extend', 'downgrade', 're-enter', 're-enter twice'] as const;

/** Of what a run has much. Each run draws its own parts: so what is rare meets in some runs, and not once in each of many. */
interface Emphasis {
  /** Nothing fails but messages, and every lease is released: then nobody waits for what is free, and nothing is left. */
  readonly isTidy: boolean;
  /** What an operator does, who takes locks away; empty: there is none, since that makes some promises void. */
  readonly operatorKinds: readonly OperationKind[];
  /** Parts of the operations, from 0 to 1. */
  readonly operator: number;
  readonly together: number;
  readonly exclusive: number;
  readonly odd: number;
  readonly manual: number;
  readonly forgotten: number;
  readonly during: number;
  readonly duringKinds: readonly DuringHold[];
  readonly ttlsMs: readonly number[];
}

function drawEmphasis(random: SeededRandom): Emphasis {
  const isTidy = random.chance(0.15);
  const hasOperator = !isTidy && random.chance(0.15);
  const hasAllKinds = random.chance(0.5);
  const duringKinds: readonly DuringHold[] = isTidy ? TIDY_DURING : [...TIDY_DURING, 'shorten'];
  return {
    isTidy,
    operatorKinds: hasOperator ? (hasAllKinds ? OPERATOR_KINDS : [random.pick(OPERATOR_KINDS)]) : [],
    operator: random.pick([0.25, 0.5]),
    together: random.pick([0.12, 0.12, 0.12, 0.5]),
    exclusive: random.pick([0.6, 0.6, 0.9, 0.25]),
    odd: random.pick([0, 0, 0.04, 0.04, 0.3]),
    manual: isTidy ? 0 : random.pick([0.3, 0.3, 0.1, 0.6]),
    forgotten: isTidy ? 0 : random.pick([0.17, 0.17, 0.05, 0.4]),
    during: random.pick([0.4, 0.4, 0.1, 0.7]),
    duringKinds: random.chance(0.5) ? duringKinds : [random.pick(duringKinds)],
    ttlsMs: random.pick([
      [60, 150, 400, 1_000],
      [60, 150, 400, 1_000],
      [60, 150],
      [400, 1_000],
    ]),
  };
}

/** Draws a run from a seed. */
export function drawPlan(backend: BackendKind, seed: number): Plan {
  const random = new SeededRandom(seed);
  const emphasis = drawEmphasis(random);
  const { isTidy, operatorKinds } = emphasis;
  const stores = backend === 'quorum' ? 3 : 1;
  const resources = drawResources(random, backend, emphasis);
  const processes = Array.from({ length: random.between(1, 3) }, (_, process) => ({
    name: `p${process}`,
    drift: drift(random),
    wallOffset: random.between(-5_000, 5_000),
    clients: Array.from({ length: random.between(1, 3) }, (__, client) => ({
      name: `p${process}.c${client}`,
      operations: Array.from({ length: random.between(1, 3) }, () =>
        drawOperation(random, resources, emphasis),
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
    network: drawNetwork(random, backend, isTidy),
    faults: isTidy ? [] : drawFaults(random, processes.length, stores, faultsEndAt),
    faultsEndAt,
    storeFaults: isTidy ? [] : drawStoreFaults(random, backend, faultsEndAt),
    replicaLagMs: random.pick([0.2, 5, 50, 300]),
    claimMs: random.pick([100, 300, 2_000, 2_000]),
    connectionLimit: random.pick([1, 2, 10]),
    checkIntervalMs: random.pick([100, 300, 1_000, 1_000]),
    refines:
      backend === 'redis' &&
      random.chance(operatorKinds.length > 0 ? REFINED_PART_WITH_OPERATORS : REFINED_PART),
    looksAtLeases: random.chance(LOOKED_AT_PART),
  };
}

/** In a part of the runs Redis or MySQL itself has faults, in half of those of one kind. */
function drawStoreFaults(random: SeededRandom, backend: BackendKind, endAt: number): StoreFaultPlan[] {
  const all = STORE_FAULT_KINDS[backend];
  if (all === undefined || !random.chance(0.25)) return [];
  const kinds = random.chance(0.5) ? all : [random.pick(all)];
  return Array.from({ length: random.between(1, 2) }, (): StoreFaultPlan => {
    const at = random.between(0, endAt);
    const downMs = Math.min(random.pick([5, 50, 500]), endAt - at);
    const kind = random.pick(kinds);
    switch (kind) {
      case 'restart':
        return { at, kind, keepsData: random.chance(0.5), downMs };
      case 'failover':
        return { at, kind, downMs };
      case 'collisions':
      case 'read-only':
        return { at, kind, ms: Math.min(random.pick([20, 300]), endAt - at) };
      case 'slot migration':
        return { at, kind, ms: Math.min(random.pick([50, 300, 1_000, 2_000]), endAt - at) };
      case 'eviction':
      case 'script flush':
        return { at, kind };
      default:
        return kind satisfies never;
    }
  });
}

/** At its limits as often as not: that is where a margin fails. */
function drift(random: SeededRandom): number {
  return random.chance(0.5) ? random.pick([-MOST_DRIFT, MOST_DRIFT]) : (random.next() * 2 - 1) * MOST_DRIFT;
}

function drawResources(
  random: SeededRandom,
  backend: BackendKind,
  { operatorKinds, together }: Emphasis,
): ResourcePlan[] {
  const hasResize = operatorKinds.includes('resize');
  return Array.from({ length: together > 0.2 ? 2 : random.pick([1, 1, 2]) }, (_, index) => {
    // A quorum has no permits.
    const hasPermits = backend !== 'quorum' && random.chance(hasResize ? 0.7 : 0.3);
    return { name: `r${index}`, permits: hasPermits ? random.between(1, 4) : undefined };
  });
}

function drawKind(random: SeededRandom, { operatorKinds, operator, together }: Emphasis): OperationKind {
  if (operatorKinds.length > 0 && random.chance(operator)) return random.pick(operatorKinds);
  if (random.chance(together)) return 'all';
  return random.pick(['acquire', 'acquire', 'acquire', 'acquire', 'try', 'run', 'run']);
}

function drawOperation(
  random: SeededRandom,
  resources: readonly ResourcePlan[],
  emphasis: Emphasis,
): OperationPlan {
  const kind = drawKind(random, emphasis);
  const first = random.between(0, resources.length - 1);
  const ttlMs = random.pick(emphasis.ttlsMs);
  const permits = resources[first]?.permits ?? 1;
  const mode = random.chance(emphasis.exclusive) ? 'exclusive' : 'shared';
  const during = random.chance(emphasis.during) ? random.pick(emphasis.duringKinds) : 'nothing';
  return {
    kind,
    afterMs: random.chance(0.3) ? 0 : random.between(0, 150),
    resources: kind === 'all' ? resources.map((_, index) => index) : [first],
    mode,
    weight: random.between(1, permits),
    isOdd: random.chance(emphasis.odd),
    // Who waits for more than there is would wait for ever.
    limit: random.between(permits, permits + 2),
    ttlMs,
    waitMs: random.pick([50, 300, 1_000, 10_000, Infinity, Infinity]),
    renewal: random.chance(emphasis.manual) ? 'manual' : 'auto',
    holdMs: random.pick([0, random.between(0, 20), random.between(0, ttlMs * 2)]),
    during,
    duringAfter: random.pick([0, 0, random.next()]),
    end: random.chance(emphasis.forgotten)
      ? 'forget'
      : random.pick(['release', 'release', 'release', 'release', 'release twice'] as const),
    abortAfterMs: random.chance(0.12)
      ? random.pick([random.between(0, 5), random.between(0, 300)])
      : undefined,
  };
}

function drawNetwork(random: SeededRandom, backend: BackendKind, isTidy: boolean): NetworkOptions {
  const rate = (): number => (random.chance(0.5) ? 0 : random.next() * 0.15);
  const isSound = isTidy || random.chance(0.3);
  const losesMessages = isTidy ? random.chance(0.4) : !isSound;
  return {
    latencyMs: random.pick([0.05, 0.5, 3]),
    // A client of Redis has one connection for its commands; those of other stores have pools.
    ordered: random.chance(0.5) || backend === 'redis',
    slow: isSound ? 0 : rate(),
    slowMs: random.pick([20, 200, 1_500]),
    lostRequests: isSound ? 0 : rate(),
    lostReplies: isSound ? 0 : rate(),
    // mysql2 sends nothing again: the adapter does.
    resent: isSound || backend === 'mysql' ? 0 : rate(),
    lostPushes: losesMessages ? rate() * 4 : 0,
  };
}

/** In half of the runs with faults they are of two kinds at most. */
function drawFaults(random: SeededRandom, processes: number, stores: number, endAt: number): FaultPlan[] {
  if (random.chance(0.35)) return [];
  const kinds = random.chance(0.5) ? FAULT_KINDS : [random.pick(FAULT_KINDS), random.pick(FAULT_KINDS)];
  const faults = Array.from({ length: random.between(1, 4) }, (): FaultPlan => {
    const at = random.between(0, endAt);
    const process = random.between(0, processes - 1);
    const store = random.between(0, stores - 1);
    const ms = Math.min(random.pick([20, 100, 500, 1_500]), endAt - at);
    const kind = random.pick(kinds);
    switch (kind) {
      case 'sleep':
        return { at, process, kind, ms: random.pick([80, 300, 1_200]) };
      case 'pause':
        return { at, process, kind, ms: random.pick([5, 80, 300, 1_200]) };
      case 'crash':
        return { at, process, kind, isNoticed: random.chance(0.5) };
      case 'wall clock':
        return { at, process, kind, ms: random.pick([-3_600_000, -100, 100, 3_600_000]) };
      case 'reset':
        return { at, process, kind, store };
      case 'store away':
        return { at, process, kind, store, ms };
      case 'close':
        return { at, process, kind, drainMs: random.pick([0, 0, 100, 1_000]) };
      case 'partition':
        return { at, process, kind, store, direction: random.pick(['requests', 'replies', 'both']), ms };
      default:
        return kind satisfies never;
    }
  });
  const sleeps = faults.some(({ kind }) => kind === 'sleep');
  // A wall clock that is set back before anybody has looked at it hides that the machine slept.
  return faults.filter((fault) => !(sleeps && fault.kind === 'wall clock' && fault.ms < 0));
}
