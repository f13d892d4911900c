/** A process that asks for a lock and lives until it is killed. Its arguments: connect string, session in ms, name. */
import { createLocks } from '@locks/core';
import { zookeeperBackend } from '@locks/zookeeper';

const [servers = '', sessionTimeoutMs, name = ''] = process.argv.slice(2);
const locks = createLocks(zookeeperBackend({ servers, sessionTimeoutMs: Number(sessionTimeoutMs) }));
process.on('disconnect', () => process.exit());
await locks.lock(name).acquire({ waitMs: 60_000 });
process.send?.('held');
