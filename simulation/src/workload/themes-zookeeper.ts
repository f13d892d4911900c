import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { Theme } from './theme.ts';

const SOUND = { slow: 0, lostRequests: 0, lostReplies: 0, resent: 0, lostPushes: 0 } as const;
const PLAIN = { isTidy: false, operatorKinds: [] } as const;

/** Each draws from a fork of its own, as all themes that came later. */
export const zookeeperThemes: readonly ((random: SeededRandom) => Theme)[] = [
  // Clients are away, or stand still, for about the time of a session, while others wait for what they hold.
  (random) => {
    const own = random.fork(20);
    return {
      weight: 12,
      backends: ['zookeeper'],
      emphasis: {
        ...PLAIN,
        clients: [1, 3],
        operations: 5,
        longHolds: 0.6,
        ttlsMs: own.pick([[400], [1_000]]),
      },
      network: own.pick([SOUND, { ...SOUND, lostReplies: 0.05 }]),
      faultKinds: own.pick([
        ['partition'],
        ['store away'],
        ['pause', 'pause', 'partition'],
        ['reset', 'partition'],
      ]),
      storeFaultKinds: own.pick([[], ['stand still']]),
      plan: { looksAtLeases: own.chance(0.7) },
    };
  },
  // The server of a client loses the others, right after messages were late, or another leader follows.
  (random) => {
    const own = random.fork(21);
    return {
      weight: 12,
      backends: ['zookeeper'],
      emphasis: {
        ...PLAIN,
        clients: [1, 3],
        operations: 6,
        longHolds: own.pick([0.3, 0.8]),
        ttlsMs: own.pick([[150], [1_000]]),
      },
      network: own.pick([
        SOUND,
        { ...SOUND, slow: 0.2, slowMs: 200 },
        { ...SOUND, slow: 0.05, slowMs: 1_500 },
      ]),
      faultKinds: own.pick([[], ['reset'], ['partition'], ['pause']]),
      storeFaultKinds: own.pick([
        ['follower cut off'],
        ['election'],
        ['follower cut off', 'election', 'restart'],
      ]),
      plan: { looksAtLeases: true },
    };
  },
  // What clients sent apart comes together, and then the server of some loses the others.
  () => ({
    weight: 12,
    backends: ['zookeeper'],
    emphasis: {
      ...PLAIN,
      exclusive: 0.9,
      together: 0,
      clients: [2, 4],
      operations: 8,
      pauseMs: 100,
      aborts: 0,
      longHolds: 0.3,
      ttlsMs: [1_000],
    },
    network: SOUND,
    faultKinds: [],
    storeFaultKinds: ['stand still', 'follower cut off'],
    plan: { looksAtLeases: true },
  }),
  // Requests are carried out, their answers are lost with the connection, and the session goes on by another server.
  (random) => {
    const own = random.fork(22);
    return {
      weight: 12,
      backends: ['zookeeper'],
      emphasis: {
        ...PLAIN,
        clients: [2, 4],
        operations: 5,
        pauseMs: 30,
        holdMs: own.pick([5, 100]),
        aborts: own.pick([0, 0.4]),
        ttlsMs: [400],
      },
      network: own.pick([
        SOUND,
        { ...SOUND, lostReplies: 0.1 },
        { ...SOUND, lostRequests: 0.05, lostPushes: 0.2 },
      ]),
      faultKinds: own.pick([
        ['reset', 'reset', 'reset'],
        ['reset', 'pause'],
        ['reset', 'store away'],
      ]),
      storeFaultKinds: own.pick([[], ['restart']]),
    };
  },
  // Holders turn into readers while the connection breaks.
  (random) => {
    const own = random.fork(23);
    return {
      weight: 12,
      backends: ['zookeeper'],
      emphasis: {
        ...PLAIN,
        exclusive: 0.9,
        clients: [2, 3],
        operations: 6,
        pauseMs: 30,
        during: 0.9,
        duringKinds: ['downgrade'],
        longHolds: 0.4,
        ttlsMs: [150],
      },
      network: {
        ...SOUND,
        ...own.pick([{ lostReplies: 0.05 }, { lostReplies: 0.05 }, { slow: 0.3, slowMs: 100 }]),
      },
      faultKinds: own.pick([['reset', 'reset'], [], []]),
      storeFaultKinds: own.pick([[], ['follower cut off']]),
      plan: { looksAtLeases: own.chance(0.5) },
    };
  },
];
