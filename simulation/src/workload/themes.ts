// One file, a list: each theme is read beside the others, so that none repeats one.
import type { StoreFaultPlan } from './plan.ts';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { NetworkOptions } from '../network/link.ts';
import type { Theme } from './theme.ts';
import { zookeeperThemes } from './themes-zookeeper.ts';
import { BACKEND_KINDS, type BackendKind } from './plan.ts';

const EVERY_BACKEND: readonly BackendKind[] = BACKEND_KINDS;
const SOUND = { slow: 0, lostRequests: 0, lostReplies: 0, resent: 0, lostPushes: 0 } as const;
const NO_FAULTS = { faultKinds: [], storeFaultKinds: [] } as const;
/** Every lease is renewed and released. */
const KEPT = { isTidy: false, operatorKinds: [], manual: 0, forgotten: 0 } as const;
/** Nobody renews for the holder, who holds for longer than the first ttl. */
const BY_HAND = { isTidy: false, operatorKinds: [], manual: 0.8, forgotten: 0, longHolds: 0.8 } as const;

const THEMES: readonly ((random: SeededRandom) => Theme)[] = [
  // Messages come late, and none is lost: what is answered late must be undone, or counted, and nothing is left in the end.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: { ...KEPT, ttlsMs: random.pick([[60, 150], [3_000]]) },
    network: { ...SOUND, slow: random.pick([0.1, 0.3, 0.5]), slowMs: random.pick([20, 200]) },
    ...NO_FAULTS,
    plan: { maxPollMs: random.pick([100, 1_000]), looksAtLeases: random.chance(0.7) },
  }),
  // A store of a quorum is slower than the others, again and again: what it grants late is given back.
  (random) => ({
    backends: ['quorum'],
    emphasis: {
      ...KEPT,
      clients: [2, 3],
      operations: 6,
      pauseMs: 30,
      holdMs: 10,
      exclusive: 0.9,
      ttlsMs: [3_000],
    },
    network: {
      ...SOUND,
      ordered: random.chance(0.3),
      slow: random.pick([0.1, 0.3]),
      slowMs: random.pick([60, 200]),
    },
    ...NO_FAULTS,
  }),
  // Or it is kept with the rest, and renewed, while another store has heard of no renewal for too long.
  (random) => ({
    weight: 2,
    backends: ['quorum'],
    emphasis: { ...KEPT, together: 0, exclusive: 0.3, clients: [1, 3], holdMs: 500, ttlsMs: [60] },
    network: { ...SOUND, ordered: true, slow: 0.35, slowMs: random.pick([80, 150]) },
    ...NO_FAULTS,
    plan: { looksAtLeases: true },
  }),
  // Requests are carried out, and their senders never learn it.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: { ...KEPT, together: random.pick([0.12, 0.5]), aborts: 0.3, ttlsMs: [3_000] },
    network: { ...SOUND, ordered: true, lostReplies: 0.3 },
    ...NO_FAULTS,
  }),
  // An abort meets a request that is under way.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: {
      ...KEPT,
      together: random.pick([0.1, 0.9]),
      aborts: 0.7,
      abortWithinMs: random.pick([4, 12, 60]),
      pauseMs: 15,
      ttlsMs: [1_000],
    },
    network: { ...SOUND, latencyMs: random.pick([0.5, 3, 3]) },
    ...NO_FAULTS,
    plan: { knownScripts: 0.5 },
  }),
  // A request that the client sent again comes after what followed its answer.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: {
      ...BY_HAND,
      clients: [2, 3],
      during: 0.9,
      duringKinds: random.pick([['extend'], ['extend', 'downgrade', 'renew']]),
      holdMs: 500,
      ttlsMs: random.pick([[150], [150, 400]]),
    },
    network: { ...SOUND, resent: 0.4, slowMs: 200 },
    ...NO_FAULTS,
    plan: { looksAtLeases: random.chance(0.7) },
  }),
  // Renewals of one lease, for different times, are under way together. A shorter one that comes after its call has ended, behind
  // later ones, shortens the lease at the store (docs/spec.md §1.7): here none is so late.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: {
      ...BY_HAND,
      during: 0.9,
      duringKinds: ['longer, shorter', 'shorter, longer', 'shorten'],
      ttlsMs: [150, 400],
    },
    network: { ...SOUND, ordered: random.chance(0.3), slow: random.pick([0, 0.3]), slowMs: 20 },
    ...NO_FAULTS,
    plan: { looksAtLeases: random.chance(0.7) },
  }),
  // A client is silent for long, and its lease lasts.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: { ...BY_HAND, operatorKinds: random.chance(0.3) ? ['steal'] : [], ttlsMs: [3_000] },
    plan: { looksAtLeases: random.chance(0.5) },
  }),
  // Processes stand still for longer than a lease, and then come its end and the grant of another at the same moment.
  (random) => ({
    backends: EVERY_BACKEND,
    emphasis: {
      isTidy: false,
      operatorKinds: [],
      exclusive: 0.9,
      clients: [2, 3],
      pauseMs: 60,
      ...(random.chance(0.5) && { holdMs: 300 }),
      ttlsMs: random.pick([
        [60, 1_000],
        [60, 150, 1_000],
      ]),
    },
    network: SOUND,
    faultKinds: ['pause'],
    storeFaultKinds: [],
  }),
  // Short holds, one after the other, over a slow line: a message may come before the answer to what it follows from.
  () => ({
    backends: EVERY_BACKEND,
    emphasis: {
      ...KEPT,
      isTidy: true,
      permits: 0,
      clients: [2, 3],
      operations: 6,
      pauseMs: 8,
      holdMs: 3,
      exclusive: 0.95,
      ttlsMs: [1_000],
    },
    network: { ...SOUND, latencyMs: 3 },
    plan: { maxPollMs: 1_000 },
  }),
  // A waiter learns of its hand-off by a check, and the message about it comes much later.
  () => ({
    backends: ['redis'],
    emphasis: { isTidy: false, operatorKinds: [], forgotten: 0.5, permits: 0, holdMs: 30, ttlsMs: [60, 150] },
    network: { ...SOUND, slow: 0.4, slowMs: 200 },
    ...NO_FAULTS,
    plan: { maxPollMs: 100, knownScripts: 0.5 },
  }),
  // The waiters of one process take turns with its leases.
  (random) => ({
    backends: ['rules', 'redis'],
    emphasis: {
      isTidy: false,
      operatorKinds: random.chance(0.3) ? ['steal', 'force-release'] : [],
      permits: 0,
      exclusive: 0.95,
      clients: [2, 5],
      operations: 5,
      pauseMs: 20,
      holdMs: random.pick([4, 4, 40]),
      ttlsMs: random.pick([[60], [400], [60, 400]]),
    },
    ...random.pick<Partial<Theme>>([
      {},
      { network: SOUND, ...NO_FAULTS },
      { network: SOUND, faultKinds: ['pause'], storeFaultKinds: [] },
    ]),
    hasCohorts: true,
  }),
  // A process stands still while one of them has its turn, and the lease lasts.
  (random) => ({
    backends: ['rules'],
    emphasis: {
      ...KEPT,
      permits: 0,
      exclusive: 1,
      together: 0,
      clients: [3, 5],
      operations: 5,
      pauseMs: 10,
      holdMs: 20,
      during: 0,
      aborts: 0,
      ttlsMs: [3_000],
    },
    network: SOUND,
    faultKinds: ['pause'],
    storeFaultKinds: [],
    plan: { cohort: { turns: 8, withinMs: random.pick([20, 50]) } },
  }),
  // Those who wait for their turn give up, also in the moment in which they get it.
  (random) => ({
    weight: 2,
    backends: ['rules', 'redis'],
    emphasis: {
      ...KEPT,
      isTidy: true,
      permits: 0,
      exclusive: 1,
      together: 0,
      clients: [2, 4],
      operations: 6,
      pauseMs: 20,
      holdMs: random.pick([4, 20]),
      during: 0,
      aborts: 0.6,
      abortWithinMs: random.pick([4, 12, 40]),
      ttlsMs: [60_000],
    },
    network: { ...SOUND, latencyMs: random.pick([0.5, 3, 3]) },
    hasCohorts: true,
  }),
  // A lease whose turn became a share is none for the next one.
  () => ({
    backends: ['rules', 'redis'],
    emphasis: {
      ...KEPT,
      permits: 0,
      exclusive: 0.9,
      together: 0,
      clients: [2, 4],
      pauseMs: 20,
      holdMs: 20,
      during: 0.6,
      duringKinds: ['downgrade'],
      ttlsMs: [1_000],
    },
    network: SOUND,
    ...NO_FAULTS,
    hasCohorts: true,
    plan: { looksAtLeases: true },
  }),
  // Holders turn into readers, and the answers are lost, or renewals from before come later.
  (random) => ({
    weight: 2,
    backends: ['redis'],
    emphasis: {
      ...KEPT,
      permits: 0,
      exclusive: 0.9,
      together: 0,
      operations: 5,
      longHolds: 1,
      during: 0.9,
      duringKinds: ['downgrade'],
      ttlsMs: random.pick([[60], [400], [3_000]]),
    },
    network: {
      ...SOUND,
      ...random.pick<Partial<NetworkOptions>>([
        { lostReplies: 0.3 },
        { slow: 0.3, slowMs: 20 },
        { resent: 0.4, slowMs: 20 },
      ]),
    },
    ...NO_FAULTS,
  }),
  // Those from whom a lock was stolen renew it.
  () => ({
    backends: EVERY_BACKEND,
    emphasis: {
      isTidy: false,
      operatorKinds: ['steal'],
      operator: 0.3,
      together: 0,
      manual: 0,
      forgotten: 0,
      during: 0,
      longHolds: 1,
      ttlsMs: [400, 1_000],
    },
    network: SOUND,
    ...NO_FAULTS,
  }),
  // What was asked of the one connection to MySQL is given up before it is sent.
  (random) => ({
    weight: 2,
    backends: ['mysql'],
    emphasis: {
      ...KEPT,
      together: random.pick([0.1, 0.6]),
      clients: [2, 4],
      operations: 5,
      pauseMs: 10,
      holdMs: 20,
      aborts: 0.6,
      abortWithinMs: random.pick([4, 12, 40]),
      ttlsMs: [3_000],
    },
    network: { ...SOUND, latencyMs: random.pick([0.5, 3]) },
    ...NO_FAULTS,
    plan: { connectionLimit: 1, requestTimeoutMs: 5_000 },
  }),
  // Sets are taken in one statement while others of the process ask for one of their locks, and are renewed.
  (random) => ({
    weight: 2,
    backends: ['mysql'],
    emphasis: {
      ...KEPT,
      together: 0.4,
      clients: [2, 3],
      operations: 6,
      pauseMs: 10,
      longHolds: 0.7,
      aborts: 0.1,
      ttlsMs: random.pick([[60], [150], [60, 400]]),
    },
    network: { ...SOUND, ordered: false, latencyMs: random.pick([0.5, 3]), slow: 0.1, slowMs: 20 },
    ...NO_FAULTS,
    plan: { connectionLimit: 10 },
  }),
  // Redis refuses commands on several keys, while leases are released and renewed.
  (random) => ({
    backends: ['redis'],
    emphasis: { isTidy: false, exclusive: random.pick([0.9, 0.25]), longHolds: 0.6, ttlsMs: [400, 1_000] },
    network: SOUND,
    faultKinds: [],
    storeFaultKinds: ['slot migration'],
  }),
  // Shares that ended without a release are still there when a holder turns its hold into a share.
  () => ({
    backends: ['redis', 'rules'],
    emphasis: {
      isTidy: false,
      operatorKinds: [],
      permits: 0,
      exclusive: 0.5,
      manual: 0.5,
      forgotten: 0.4,
      during: 0.7,
      duringKinds: ['downgrade'],
      operations: 5,
      ttlsMs: [60, 150],
    },
    network: SOUND,
    faultKinds: [],
    storeFaultKinds: [],
    plan: { refines: true },
  }),
  // Holders end without a word, and others must see by their own clocks that they did, or by a clock of the store.
  (random) => {
    const own = random.fork(1);
    return {
      weight: 2,
      backends: ['record'],
      emphasis: {
        ...BY_HAND,
        clients: [1, 2],
        operations: 5,
        longHolds: 0.3,
        forgotten: 0.4,
        pauseMs: 60,
        exclusive: 0.8,
        ttlsMs: own.pick([[60], [60, 150], [400]]),
      },
      network: SOUND,
      faultKinds: own.pick([[], ['pause'], ['crash']]),
      storeFaultKinds: [],
      record: { stale: 0, failed: 0 },
      plan: { looksAtLeases: true },
    };
  },
  // Nobody knows whether a write took place.
  (random) => {
    const own = random.fork(2);
    return {
      weight: 2,
      backends: ['record'],
      emphasis: {
        isTidy: false,
        operatorKinds: own.pick([[], [], ['steal'], ['force-release']]),
        operations: 5,
        pauseMs: 30,
        holdMs: own.pick([20, 300]),
        aborts: 0.3,
        ttlsMs: own.pick([[60, 400], [3_000]]),
      },
      network: {
        ...SOUND,
        ...own.pick<Partial<NetworkOptions>>([
          { lostReplies: 0.3 },
          { resent: 0.4, slowMs: 20 },
          { slow: 0.3, slowMs: 1_500 },
        ]),
      },
      faultKinds: own.pick([[], ['reset'], ['close']]),
      storeFaultKinds: [],
      record: { stale: 0, failed: own.pick([0, 0.3]), retries: own.pick([0, 2]) },
    };
  },
  // Reads are stale, and nothing else fails.
  (random) => {
    const own = random.fork(3);
    return {
      backends: ['record'],
      emphasis: {
        isTidy: false,
        operatorKinds: [],
        clients: [1, 3],
        operations: 5,
        pauseMs: 30,
        holdMs: own.pick([20, 300]),
        ttlsMs: own.pick([[60, 150], [1_000]]),
      },
      network: SOUND,
      ...NO_FAULTS,
      record: { stale: own.pick([0.2, 0.6]), staleMs: own.pick([20, 200, 1_000]), failed: 0 },
    };
  },
  // Another leader, while leases are granted and renewed: the one before knows the new ones not.
  (random) => {
    const own = random.fork(5);
    return {
      weight: 3,
      backends: ['etcd'],
      emphasis: {
        isTidy: false,
        operatorKinds: [],
        manual: own.pick([0, 0.5]),
        forgotten: 0,
        operations: 5,
        longHolds: 0.6,
        ttlsMs: own.pick([[60], [60, 400]]),
      },
      network: SOUND,
      faultKinds: own.pick([[], [], ['partition'], ['crash']]),
      storeFaultKinds: ['election'],
      plan: { looksAtLeases: own.chance(0.5) },
    };
  },
  // The server cannot be reached for long, and some who wait give up meanwhile, or stand still between two attempts.
  (random) => {
    const own = random.fork(6);
    return {
      weight: 3,
      backends: ['etcd'],
      emphasis: {
        ...KEPT,
        permits: 0,
        exclusive: 0.9,
        together: 0,
        clients: [2, 4],
        operations: 4,
        pauseMs: 60,
        longHolds: own.pick([0.3, 0.7]),
        aborts: 0.5,
        abortWithinMs: own.pick([300, 3_000]),
        ttlsMs: [60],
      },
      network: own.pick([SOUND, { ...SOUND, lostReplies: 0.1 }]),
      faultKinds: own.pick([['store away'], ['partition'], ['store away', 'pause', 'pause']]),
      storeFaultKinds: own.pick([[], ['restart'], ['stand still']]),
      plan: { requestTimeoutMs: own.pick([400, 5_000]) },
    };
  },
  // The waiters of one process hand over to each other while their checks are answered late.
  (random) => {
    const own = random.fork(7);
    const isLong = own.chance(0.5);
    return {
      weight: 3,
      backends: ['etcd'],
      emphasis: {
        ...KEPT,
        permits: isLong ? 0 : own.pick([0, 0.5]),
        exclusive: isLong ? 1 : 0.6,
        together: 0.25,
        clients: [3, 5],
        operations: 6,
        pauseMs: isLong ? 60 : 5,
        holdMs: isLong ? 400 : own.pick([3, 40]),
        during: own.pick([0, 0.5]),
        aborts: isLong ? 0.5 : own.pick([0.1, 0.4]),
        ...(isLong && { abortWithinMs: 1_000 }),
        ttlsMs: [60],
      },
      network: {
        ...SOUND,
        ordered: false,
        slow: own.pick([0.2, 0.5]),
        slowMs: isLong ? 1_000 : own.pick([20, 200]),
      },
      ...NO_FAULTS,
    };
  },
  // Whoever is to be granted waits for a lease, or its write comes late, and meanwhile somebody steals.
  (random) => {
    const own = random.fork(9);
    return {
      weight: 2,
      backends: ['etcd'],
      emphasis: {
        isTidy: false,
        operatorKinds: own.pick([['steal'], ['steal', 'resize']]),
        operator: 0.4,
        together: 0,
        permits: own.pick([0.3, 1]),
        clients: [2, 4],
        operations: 5,
        pauseMs: 100,
        holdMs: own.pick([40, 400]),
        aborts: 0.05,
        forgotten: 0,
        manual: 0,
        ttlsMs: [60, 400, 3_000],
      },
      network: { ...SOUND, ordered: false, slow: own.pick([0.2, 0.4]), slowMs: own.pick([20, 200, 1_500]) },
      ...NO_FAULTS,
      plan: { requestTimeoutMs: own.pick([400, 5_000]) },
    };
  },
  // Streams end, and what watches missed is compacted away.
  (random) => {
    const own = random.fork(8);
    return {
      weight: 2,
      backends: ['etcd'],
      emphasis: {
        ...KEPT,
        clients: [2, 3],
        operations: 5,
        longHolds: own.pick([0, 0.4]),
        operatorKinds: own.pick([[], ['force-release', 'steal']]),
        ttlsMs: [60, 400],
      },
      network: own.pick([SOUND, { ...SOUND, lostPushes: 0.1 }]),
      faultKinds: own.pick([[], ['reset']]),
      storeFaultKinds: ['streams end', 'streams end', 'compaction', 'restart'],
      plan: { looksAtLeases: own.chance(0.5) },
    };
  },
  ...zookeeperThemes,
  // Processes stand still in the middle of transactions, or are killed there, and leases are short.
  (random) => {
    const own = random.fork(10);
    return {
      weight: 4,
      backends: ['sqlite'],
      emphasis: {
        isTidy: false,
        operatorKinds: [],
        together: own.pick([0.1, 0.4]),
        exclusive: 0.8,
        clients: [1, 3],
        operations: 6,
        pauseMs: own.pick([60, 400]),
        longHolds: 0.5,
        ttlsMs: own.pick([[60], [150, 400], [1_000]]),
      },
      faultKinds: own.pick([['reset'], ['reset', 'partition'], ['partition', 'close']]),
      storeFaultKinds: [],
      plan: { looksAtLeases: own.chance(0.7) },
    };
  },
  // Somebody else has the file for long, and meanwhile those who wait give up.
  (random) => {
    const own = random.fork(11);
    return {
      weight: 2,
      backends: ['sqlite'],
      emphasis: {
        isTidy: false,
        operatorKinds: [],
        clients: [2, 4],
        operations: 4,
        pauseMs: 60,
        aborts: 0.5,
        abortWithinMs: own.pick([60, 1_500]),
        ttlsMs: own.pick([[60, 400], [3_000]]),
      },
      faultKinds: own.pick([['store away'], ['store away', 'reset', 'pause']]),
      storeFaultKinds: own.pick([[], [], ['full'], ['read-only']]),
    };
  },
  // Holds are so long that those who wait send heartbeats, or are silent for too long.
  (random) => {
    const own = random.fork(12);
    return {
      weight: 2,
      backends: ['sqlite'],
      emphasis: {
        ...KEPT,
        exclusive: 1,
        permits: own.pick([0, 0.5]),
        odd: own.pick([0, 0.3]),
        together: 0,
        clients: [1, 3],
        longHolds: 1,
        aborts: 0,
        ttlsMs: [3_000],
      },
      faultKinds: own.pick([[], [], ['pause']]),
      storeFaultKinds: [],
    };
  },
  // The application shares its pool with the locks, and nothing else fails.
  (random) => {
    const own = random.fork(10);
    return {
      weight: 4,
      backends: ['postgres'],
      emphasis: {
        isTidy: false,
        operatorKinds: [],
        clients: [2, 3],
        operations: 6,
        pauseMs: own.pick([40, 200, 400]),
        exclusive: 0.9,
        holdMs: own.pick([20, 300]),
        ttlsMs: own.pick([[400], [1_000, 3_000]]),
      },
      network: SOUND,
      faultKinds: [],
      storeFaultKinds: own.pick<readonly StoreFaultPlan['kind'][]>([
        ['open transaction'],
        ['open transaction'],
        ['open transaction', 'left setting'],
        ['held connections', 'open transaction'],
      ]),
      plan: { connectionLimit: own.pick([1, 2, 4]), looksAtLeases: own.chance(0.7) },
    };
  },
  // Statements wait for rows, and connections end, while locks change hands.
  (random) => {
    const own = random.fork(11);
    return {
      weight: 2,
      backends: ['postgres'],
      emphasis: {
        isTidy: false,
        operatorKinds: own.pick([[], ['steal', 'force-release']]),
        clients: [2, 3],
        operations: 5,
        pauseMs: 30,
        holdMs: own.pick([5, 100]),
        ttlsMs: own.pick([[150, 400], [3_000]]),
      },
      network: own.pick([SOUND, { ...SOUND, lostReplies: 0.05, lostPushes: 0.1 }]),
      faultKinds: own.pick([[], ['reset']]),
      storeFaultKinds: ['rows locked', 'rows locked', 'sessions end', 'restart'],
    };
  },
  // A name is not used for so long that its record is deleted.
  () => ({
    backends: ['record'],
    emphasis: { isTidy: false, operatorKinds: [], exclusive: 0.9, operations: 4, pauseMs: 45_000 },
    faultKinds: [],
    storeFaultKinds: [],
  }),
];

/** The part of the runs that have a theme. */
const THEMED_PART = 0.45;

/** What meets so rarely that a run has to be made for it. */
export function drawTheme(random: SeededRandom, backend: BackendKind): Theme | undefined {
  if (!random.chance(THEMED_PART)) return undefined;
  const themes = THEMES.map((draw) => draw(random));
  const applicable = themes.filter(({ backends }) => backends.includes(backend));
  return random.pick(applicable.flatMap((theme) => Array.from({ length: theme.weight ?? 1 }, () => theme)));
}
