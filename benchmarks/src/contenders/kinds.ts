import { type BaseLease, createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { quorumBackend } from '@locks/quorum';
import { Semaphore as PollingSemaphore } from 'redis-semaphore';
import { backends, ioredis } from './clients.ts';
import { type Client, type Contender, foreign, ours, TTL_MS, waitForever } from './contender.ts';

/** How many permits the semaphores have. */
export const PERMITS = 8;
/** How many locks one set has. */
export const TOGETHER = 5;
/** How many servers a quorum has; everything else uses the first of them. */
export const QUORUM = 3;

const store = 'kinds';
const clients = { ioredis: backends['redis-ioredis'], 'node-redis': backends['redis-node'] };
const partsOf = (name: string): string[] => Array.from({ length: TOGETHER }, (_, part) => `${name}:${part}`);

function onFirst<C>({ packages, connect }: Client<C>): Client<C> {
  return { packages, connect: (urls) => connect(urls.split(' ')[0] as string) };
}

function onQuorum({ packages, connect }: Client<LockBackend>): Client<LockBackend> {
  return {
    packages,
    async connect(urls) {
      const all = await Promise.all(urls.split(' ').map(connect));
      const [first] = all as [(typeof all)[number]];
      return {
        client: quorumBackend(all.map(({ client }) => client)),
        ping: first.ping,
        close: () => Promise.all(all.map(({ close }) => close())),
      };
    },
  };
}

/** The kinds of locks, and what they are compared to, on one client. */
const kindsOn = (label: string, backend: Client<LockBackend>): Contender[] => {
  const one = onFirst(backend);
  const named = (name: string) => ({ store, name: `${name}, ${label}` }) as const;
  const plain = ours({ ...named('exclusive'), rows: ['readers', 'all', 'quorum'] }, one);
  const separate = foreign(
    { ...named(`${TOGETHER} separate`), kind: 'floor', rows: ['all'], packages: ['@locks/core'] },
    one,
    acquireSeparately,
  );
  return [
    plain,
    ours(
      {
        ...named('readers of one name'),
        rows: ['readers'],
        floor: plain.name,
        acquire: (locks) => locks.readWriteLock('bench:readers').read.acquire(waitForever),
      },
      one,
    ),
    ours(
      {
        ...named(`semaphore of ${PERMITS}`),
        rows: ['semaphore', 'weights'],
        acquire: (locks, name, weight) => locks.semaphore(name, PERMITS).acquire({ ...waitForever, weight }),
      },
      one,
    ),
    ours(
      {
        ...named(`all of ${TOGETHER}`),
        rows: ['all'],
        floor: separate.name,
        acquire: (locks, name) =>
          locks.all(partsOf(name).map((part) => locks.lock(part))).acquire(waitForever),
      },
      one,
    ),
    ours({ ...named(`quorum of ${QUORUM}`), rows: ['quorum'], floor: plain.name }, onQuorum(backend)),
    separate,
  ];
};

/** The locks of a set without `all`: one after the other, in an order that all processes share. */
function acquireSeparately(backend: LockBackend) {
  const locks = createLocks(backend, { ttlMs: TTL_MS });
  return async (name: string) => {
    const leases: BaseLease[] = [];
    for (const part of partsOf(name)) leases.push(await locks.lock(part).acquire(waitForever));
    return async () => {
      for (const lease of leases.toReversed()) await lease.release();
    };
  };
}

/** Polls every 10 ms, and has no weights. */
const pollingSemaphore = foreign(
  { store, name: 'redis-semaphore', kind: 'peer', rows: ['semaphore'], packages: ['redis-semaphore'] },
  onFirst(ioredis),
  (client) => async (name) => {
    const options = { lockTimeout: TTL_MS, acquireTimeout: Number.POSITIVE_INFINITY };
    const semaphore = new PollingSemaphore(client, name, PERMITS, options);
    await semaphore.acquire();
    return () => semaphore.release();
  },
);

export const kindsContenders: readonly Contender[] = [
  ...Object.entries(clients).flatMap(([label, backend]) => kindsOn(label, backend)),
  pollingSemaphore,
];
