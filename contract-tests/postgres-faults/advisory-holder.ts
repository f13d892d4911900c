/** A process that acquires one lock and keeps it, telling over IPC what happens. */
import { createLocks, isLockError } from '@locks/core';
import { postgresAdvisoryBackend } from '@locks/postgres';

const [connectionString = '', name = '', sessionTimeoutMs] = process.argv.slice(2);
const locks = createLocks(
  postgresAdvisoryBackend({ connectionString, sessionTimeoutMs: Number(sessionTimeoutMs) }),
);
// A lease does not keep a process alive.
process.on('message', () => undefined);
const acquiring = locks.lock(name).acquire({ waitMs: 60_000 });
process.send?.('begins');
const lease = await acquiring;
lease.signal.addEventListener('abort', () => {
  const { reason } = lease.signal;
  process.send?.(isLockError(reason, 'LOCK_LOST') ? `lost: ${reason.reason}` : 'aborted');
});
process.send?.('holds');
