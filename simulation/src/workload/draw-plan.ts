// One file, since every draw of a seed's plan comes in one order, and depends on those before it.
import { SeededRandom } from '../kernel/seeded-random.ts';
import type { NetworkOptions } from '../network/link.ts';
import { drawRecordPlan } from './draw-record-plan.ts';
import { drawEmphasis, type Emphasis } from './emphasis.ts';
import {
  isClean,
  type BackendKind,
  type CohortPlan,
  type FaultPlan,
  type OperationKind,
  type OperationPlan,
  type Plan,
  type PlanVariant,
  type ResourcePlan,
  type StoreFaultPlan,
} from './plan.ts';
import { onOneMachine } from './on-one-machine.ts';
import type { Theme } from './theme.ts';
import { drawTheme } from './themes.ts';
import { withApplication } from './with-application.ts';
import { withStalls } from './with-stalls.ts';
import { withThreads } from './with-threads.ts';

/** Half a per cent: two clocks run apart by 1 % at most, which is what the margin of a lease allows for. */
const MOST_DRIFT = 0.005;
/** To compare every script with the rules takes longer than to run it. */
const REFINED_PART = 0.25;
/** Where operators take locks away, hardly another check tells what a script did. */
const REFINED_PART_WITH_OPERATORS = 0.7;
const LOOKED_AT_PART = 0.3;
const COHORT_PART = 0.1;
const FAULT_KINDS: readonly FaultPlan['kind'][] = [
  ...['pause', 'pause', 'sleep', 'crash', 'wall clock', 'reset', 'store away', 'close', 'partition'],
] as FaultPlan['kind'][];
const STORE_FAULT_KINDS: Partial<Record<BackendKind, readonly StoreFaultPlan['kind'][]>> = {
  redis: ['restart', 'restart', 'failover', 'slot migration', 'eviction', 'script flush'],
  mysql: ['restart', 'failover', 'collisions', 'read-only'],
  record: ['restart', 'collisions', 'read-only'],
  etcd: ['restart', 'election', 'election', 'stand still', 'compaction', 'streams end'],
  zookeeper: ['restart', 'election', 'election', 'stand still', 'follower cut off', 'follower cut off'],
  sqlite: ['read-only', 'full'],
  postgres: [
    ...(['restart', 'failover', 'read-only', 'sessions end', 'rows locked'] as const),
    ...(['open transaction', 'open transaction', 'left setting', 'held connections'] as const),
  ],
};

/** The leases of etcd last whole seconds: what others do within a ttl takes longer there. */
const STRETCH_OF_ETCD = 4;
const MOST_STRETCH_OF_AWAY = 10;
/** Faults after which messages come together that were sent apart. */
const LATE_MESSAGES: ReadonlySet<string> = new Set(['pause', 'partition', 'stand still']);
/** A session of ZooKeeper lasts for up to 2 s. */
const STRETCH_OF_ZOOKEEPER = 2;

/**
 * Draws a run from a seed.
 *
 * @param variant - `transfer`: leases that would be released go on in another process, most of them; `thread`: a thread of each process
 * renews its leases
 */
export function drawPlan(backend: BackendKind, seed: number, variant?: PlanVariant): Plan {
  const plan = drawOwnPlan(backend, seed);
  if (variant === 'thread') return withThreads(plan);
  // A session is not handed over.
  return variant === 'transfer' && backend !== 'zookeeper'
    ? withTransfers(plan, new SeededRandom(seed).fork(7))
    : plan;
}

/** The same run, in which exclusive leases are transferred at their end. */
function withTransfers(plan: Plan, random: SeededRandom): Plan {
  const transferred = (operation: OperationPlan): OperationPlan => {
    const { kind, end, mode, resources, ttlMs, during } = operation;
    const [first = 0] = resources;
    const isExclusive = mode === 'exclusive' && plan.resources[first]?.permits === undefined;
    const mayTransfer = kind === 'acquire' && end === 'release' && isExclusive && during !== 'downgrade';
    if (!mayTransfer || !random.chance(0.8)) return operation;
    const transfer = {
      to: random.between(0, plan.processes.length - 1),
      afterMs: random.pick([0, 1, random.between(0, ttlMs), random.between(0, 2 * ttlMs)]),
      twice: random.chance(0.4),
      holdMs: random.pick([0, random.between(0, 20), random.between(0, ttlMs)]),
    };
    return { ...operation, end: 'transfer', transfer };
  };
  const processes = plan.processes.map((process) => ({
    ...process,
    clients: process.clients.map((client) => ({
      ...client,
      operations: client.operations.map(transferred),
    })),
  }));
  // Their leases serve others of their process too.
  return { ...plan, processes, cohort: undefined };
}

function drawOwnPlan(backend: BackendKind, seed: number): Plan {
  const drawn = drawAnyPlan(backend, seed);
  if (backend === 'sqlite') return onOneMachine(withStalls(drawn));
  const plan = withApplication(withStalls(drawn));
  if (backend === 'zookeeper') return inSessions(plan);
  if (backend === 'postgres') return onOwnConnections(plan);
  return backend === 'etcd' ? inSeconds(plan) : plan;
}

/** The same run where a ttl ends nothing: every lease is renewed, for its ttl, and released. */
function inSessions(plan: Plan): Plan {
  const kept = (operation: OperationPlan): OperationPlan => {
    const { during, end } = operation;
    const isForTtl = during !== 'extend' && !during.includes('shorte');
    return {
      ...operation,
      renewal: 'auto',
      during: isForTtl ? during : 'renew',
      end: end === 'release twice' ? end : 'release',
    };
  };
  const processes = plan.processes.map((process) => ({
    ...process,
    clients: process.clients.map((client) => ({ ...client, operations: client.operations.map(kept) })),
  }));
  const longer = withLongerFaults(plan, STRETCH_OF_ZOOKEEPER);
  // A session hangs on what was heard last: a server loses the others right after its clients were away.
  const random = new SeededRandom(plan.seed).fork(9);
  const [away] = [...longer.faults, ...longer.storeFaults].filter(({ kind }) => LATE_MESSAGES.has(kind));
  const storeFaults = longer.storeFaults.map((fault) =>
    fault.kind === 'follower cut off' && away !== undefined && 'ms' in away && random.chance(0.7)
      ? { ...fault, at: Math.min(away.at + away.ms + random.next() * 50, longer.faultsEndAt) }
      : fault,
  );
  return { ...longer, processes, storeFaults };
}

/** Every connection to PostgreSQL is in order by itself, and what one that was given up still carries comes late. */
function onOwnConnections(plan: Plan): Plan {
  return { ...plan, network: { ...plan.network, ordered: isClean(plan) } };
}

/** The same run with leases of whole seconds, and with faults that last as long beside them. */
function inSeconds(plan: Plan): Plan {
  const processes = plan.processes.map((process) => ({
    ...process,
    clients: process.clients.map((client) => ({
      ...client,
      operations: client.operations.map(ofSeconds),
    })),
  }));
  return { ...withLongerFaults(plan, STRETCH_OF_ETCD), processes };
}

function withLongerFaults(plan: Plan, mostStretch: number): Plan {
  const random = new SeededRandom(plan.seed).fork(8);
  const faultsEndAt = plan.faultsEndAt * mostStretch;
  const longer = <T extends { readonly at: number; readonly kind: string }>(fault: T): T => {
    const at = fault.at * mostStretch;
    // Leases and heartbeats are in seconds too: no length comes again and again. Without a leader some wait for longer than a ttl.
    const times = Object.entries(fault).filter(([name, value]) => /(^m|M)s$/.test(name) && isShort(value));
    const stretched = times.map(([name, value]) => {
      const ms = Number(value);
      const isAway = name === 'downMs' || fault.kind === 'store away';
      const stretch = 1 + random.next() * ((isAway ? MOST_STRETCH_OF_AWAY : mostStretch) - 1);
      return [name, isAway ? Math.min(ms * stretch, faultsEndAt - at) : ms * stretch];
    });
    return { ...fault, ...Object.fromEntries(stretched), at };
  };
  return {
    ...plan,
    faults: plan.faults.map(longer),
    storeFaults: plan.storeFaults.map(longer),
    faultsEndAt,
  };
}

/** A time that leases notice; what makes a clock jump by an hour does so in any case. */
function isShort(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) < 10_000;
}

/** An even number of seconds, since some holders renew for half of it, and a hold in proportion where it goes by the ttl. */
function ofSeconds(operation: OperationPlan): OperationPlan {
  const { ttlMs, holdMs } = operation;
  const ttl = ttlMs > 1_000 ? 2 * ttlMs : ttlMs > 200 ? 4_000 : 2_000;
  const isByTtl = holdMs > 20 && holdMs <= 2 * ttlMs;
  return { ...operation, ttlMs: ttl, holdMs: isByTtl ? Math.round((holdMs * ttl) / ttlMs) : holdMs };
}

function drawAnyPlan(backend: BackendKind, seed: number): Plan {
  const random = new SeededRandom(seed);
  const theme = drawTheme(random, backend);
  const emphasis = { ...drawEmphasis(random), ...theme?.emphasis };
  const { isTidy, operatorKinds } = emphasis;
  const stores = backend === 'quorum' ? 3 : 1;
  const resources = drawResources(random, backend, emphasis);
  const processes = Array.from({ length: random.between(1, 3) }, (_, process) => ({
    name: `p${process}`,
    drift: drift(random),
    wallOffset: random.between(-5_000, 5_000),
    clients: Array.from({ length: random.between(...emphasis.clients) }, (__, client) => ({
      name: `p${process}.c${client}`,
      operations: Array.from({ length: random.between(1, emphasis.operations) }, () =>
        drawOperation(random, resources, emphasis),
      ),
    })),
  }));
  const faultsEndAt = random.between(200, 2_500);
  const storeDrifts = Array.from({ length: stores }, () => drift(random));
  const network = { ...drawNetwork(random, backend, isTidy), ...networkOf(theme, backend) };
  const faults = isTidy ? [] : drawFaults(random, theme, processes.length, stores, faultsEndAt);
  const setsClocks = faults.some(({ kind }) => kind === 'wall clock');
  return {
    backend,
    seed,
    resources,
    processes,
    storeDrifts,
    network,
    faults,
    faultsEndAt,
    storeFaults: isTidy
      ? []
      : drawStoreFaults(random, theme, backend, faultsEndAt, [processes.length, resources.length]),
    replicaLagMs: random.pick([0.2, 5, 50, 300]),
    connectionLimit: random.pick([1, 2, 10]),
    requestTimeoutMs: random.pick([400, 5_000]),
    maxPollMs: random.pick([100, 300, 1_000, 1_000]),
    cohort: theme?.hasCohorts || random.chance(COHORT_PART) ? drawCohort(random, backend) : undefined,
    knownScripts: random.pick([0, 0.5, 1]),
    refines: random.chance(operatorKinds.length > 0 ? REFINED_PART_WITH_OPERATORS : REFINED_PART),
    looksAtLeases: random.chance(LOOKED_AT_PART),
    record: backend === 'record' ? drawRecordPlan(random, isTidy, setsClocks, theme?.record) : undefined,
    ...theme?.plan,
  };
}

/** A quorum has no queue to build on; what cohorts do on MySQL, they do on the others. */
function drawCohort(random: SeededRandom, backend: BackendKind): CohortPlan | undefined {
  if (backend !== 'rules' && backend !== 'redis') return undefined;
  return { turns: random.pick([2, 3, 8]), withinMs: random.pick([5, 20, 200]) };
}

/** What holds for all networks of a backend holds for those of a theme. */
function networkOf(theme: Theme | undefined, backend: BackendKind): Partial<NetworkOptions> {
  if (theme?.network === undefined) return {};
  if (sendsAgainItself(backend)) return { ...theme.network, resent: 0 };
  // A client of Redis has one connection for its commands.
  return backend === 'redis' ? { ...theme.network, ordered: true } : theme.network;
}

/** mysql2 and the client of ZooKeeper send nothing again: the adapters do. The simulated client of etcd sends again what failed. */
function sendsAgainItself(backend: BackendKind): boolean {
  return ['mysql', 'etcd', 'zookeeper', 'postgres'].includes(backend);
}

/** In a part of the runs the store itself has faults, in half of those of one kind. */
function drawStoreFaults(
  random: SeededRandom,
  theme: Theme | undefined,
  backend: BackendKind,
  endAt: number,
  [processes, resources]: readonly [number, number],
): StoreFaultPlan[] {
  const all = STORE_FAULT_KINDS[backend];
  const chosen = theme?.storeFaultKinds;
  if (all === undefined || chosen?.length === 0) return [];
  if (chosen === undefined && !random.chance(0.25)) return [];
  const kinds = chosen ?? (random.chance(0.5) ? all : [random.pick(all)]);
  const most = backend !== 'postgres' ? 2 : chosen === undefined ? 5 : 12;
  return Array.from({ length: random.between(1, most) }, (): StoreFaultPlan => {
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
      case 'full':
        return { at, kind, ms: Math.min(random.pick([20, 300]), endAt - at) };
      case 'slot migration':
        return { at, kind, ms: Math.min(random.pick([50, 300, 1_000, 2_000]), endAt - at) };
      case 'election':
        return { at, kind, downMs, oldMs: random.pick([0, 20, 300, 2_000]) };
      case 'stand still':
      case 'follower cut off':
        return { at, kind, ms: Math.min(random.pick([5, 100, 500, 1_500]), endAt - at) };
      case 'compaction':
      case 'sessions end':
        return { at, kind };
      case 'rows locked': {
        const ms = Math.min(random.pick([20, 300, 1_500]), endAt - at);
        return { at, kind, resource: random.between(0, resources - 1), ms };
      }
      case 'open transaction': {
        const process = random.between(0, processes - 1);
        const begin = random.pick(['answered', 'answered', 'unanswered', 'failed', 'late'] as const);
        const end = random.pick(['COMMIT', 'ROLLBACK', 'ROLLBACK'] as const);
        const ms = Math.min(random.pick([5, 50, 300, 1_500]), endAt - at);
        return { at, kind, process, begin, works: random.chance(0.5), end, ms };
      }
      case 'left setting': {
        const process = random.between(0, processes - 1);
        const setting = random.pick(['statement timeout', 'search path', 'read-only'] as const);
        return { at, kind, process, setting, ms: Math.min(random.pick([50, 300, 1_500]), endAt - at) };
      }
      case 'held connections': {
        const ms = Math.min(random.pick([50, 300, 1_500]), endAt - at);
        return { at, kind, process: random.between(0, processes - 1), ms };
      }
      case 'streams end':
        return { at, kind, compacts: random.chance(0.5) };
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
  { permits, together }: Emphasis,
): ResourcePlan[] {
  return Array.from({ length: together > 0.2 ? 2 : random.pick([1, 1, 2]) }, (_, index) => {
    // A quorum has no permits, nor has ZooKeeper.
    const hasPermits = backend !== 'quorum' && backend !== 'zookeeper' && random.chance(permits);
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
    afterMs: random.chance(0.3) ? 0 : random.between(0, emphasis.pauseMs),
    resources: kind === 'all' ? resources.map((_, index) => index) : [first],
    mode,
    weight: random.between(1, permits),
    isOdd: random.chance(emphasis.odd),
    // Who waits for more than there is would wait for ever.
    limit: random.between(permits, permits + 2),
    ttlMs,
    waitMs: random.pick([50, 300, 1_000, 10_000, Infinity, Infinity]),
    renewal: random.chance(emphasis.manual) ? 'manual' : 'auto',
    holdMs: drawHold(random, ttlMs, emphasis),
    during,
    duringAfter: random.pick([0, 0, random.next()]),
    end: random.chance(emphasis.forgotten)
      ? 'forget'
      : random.pick(['release', 'release', 'release', 'release', 'release twice'] as const),
    abortAfterMs: random.chance(emphasis.aborts) ? drawAbort(random, emphasis) : undefined,
  };
}

function drawHold(random: SeededRandom, ttlMs: number, { longHolds, holdMs }: Emphasis): number {
  if (holdMs !== undefined) return random.between(0, holdMs);
  if (random.chance(longHolds)) return random.between(0, ttlMs * 2);
  return random.chance(0.5) ? 0 : random.between(0, 20);
}

function drawAbort(random: SeededRandom, { abortWithinMs }: Emphasis): number {
  if (abortWithinMs !== undefined) return random.between(0, Math.ceil(abortWithinMs));
  return random.pick([random.between(0, 5), random.between(0, 300)]);
}

function drawNetwork(random: SeededRandom, backend: BackendKind, isTidy: boolean): NetworkOptions {
  const rate = (): number => (random.chance(0.5) ? 0 : random.next() * 0.15);
  const isSound = isTidy || random.chance(0.3);
  const losesMessages = isTidy ? random.chance(0.4) : !isSound;
  return {
    latencyMs: random.pick([0.05, 0.5, 3]),
    // A client of Redis has one connection for its commands; those of other stores have pools.
    ordered: random.chance(0.5) || backend === 'redis' || backend === 'zookeeper',
    slow: isSound ? 0 : rate(),
    slowMs: random.pick([20, 200, 1_500]),
    lostRequests: isSound ? 0 : rate(),
    lostReplies: isSound ? 0 : rate(),
    resent: isSound || sendsAgainItself(backend) ? 0 : rate(),
    lostPushes: losesMessages ? rate() * 4 : 0,
  };
}

/** In half of the runs with faults they are of two kinds at most. */
function drawFaults(
  random: SeededRandom,
  theme: Theme | undefined,
  processes: number,
  stores: number,
  endAt: number,
): FaultPlan[] {
  const chosen = theme?.faultKinds;
  if (chosen?.length === 0 || (chosen === undefined && random.chance(0.35))) return [];
  const some = random.chance(0.5) ? FAULT_KINDS : [random.pick(FAULT_KINDS), random.pick(FAULT_KINDS)];
  const kinds = chosen ?? some;
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
      case 'stall':
      case 'block':
      case 'thread stands still':
      case 'thread ends':
      case 'application':
        throw new Error(`${kind} is drawn apart from the other faults`);
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
      case 'in a transaction':
        throw new Error('drawn in place of other faults');
      default:
        return kind satisfies never;
    }
  });
  const sleeps = faults.some(({ kind }) => kind === 'sleep');
  // A wall clock that is set back before anybody has looked at it hides that the machine slept.
  return faults.filter((fault) => !(sleeps && fault.kind === 'wall clock' && fault.ms < 0));
}
