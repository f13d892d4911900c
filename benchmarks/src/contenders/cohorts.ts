import type { LockBackend } from '@locks/core/backend';
import { cohortBackend } from '@locks/cohort';
import { backends } from './clients.ts';
import { type Contender, ours } from './contender.ts';

const libraries = ['redis-ioredis', 'postgres lease', 'mysql', 'etcd', 'sqlite'] as const;

const wayTo: Readonly<Record<string, (backend: LockBackend) => LockBackend>> = {
  plain: (backend) => backend,
  cohorts: (backend) => cohortBackend(backend),
  'cohorts of 256': (backend) => cohortBackend(backend, { turns: 256 }),
};

/** Each store without cohorts, with their defaults, and with as many turns as there can be. */
export const cohortContenders: readonly Contender[] = libraries.flatMap((library) =>
  Object.entries(wayTo).map(([way, around]) =>
    ours(
      { store: 'cohorts', name: `${library}, ${way}`, floor: `${library}, plain` },
      {
        ...backends[library],
        async connect(url) {
          const connection = await backends[library].connect(url);
          return { ...connection, client: around(connection.client) };
        },
      },
    ),
  ),
);
