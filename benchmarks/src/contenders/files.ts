import path from 'node:path';
import { lock } from 'proper-lockfile';
import { backends, noClient } from './clients.ts';
import { type Contender, foreign, ours, POLL_MS, TTL_MS } from './contender.ts';

const store = 'files';

/** A directory and its mtime. It has no queue: every waiter polls, by default at most ten times, from one second on. */
const properLockfile = foreign(
  { store, name: `proper-lockfile ${POLL_MS} ms`, kind: 'peer', packages: ['proper-lockfile'] },
  noClient,
  (folder) => (name) =>
    lock(path.join(folder, encodeURIComponent(name)), {
      stale: TTL_MS,
      realpath: false,
      retries: { forever: true, factor: 1, minTimeout: POLL_MS, maxTimeout: POLL_MS },
    }),
);

export const fileContenders: readonly Contender[] = [
  properLockfile,
  ours({ store, name: '@locks/file', floor: properLockfile.name }, backends.file),
  ours({ store, name: '@locks/sqlite', floor: properLockfile.name }, backends.sqlite),
];
