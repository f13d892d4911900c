import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';

// A process that waits for a lock, and tells when it waits and when it got it: contender.ts MODULE NAME TTL
const [module = '', name = '', ttlMs = ''] = process.argv.slice(2);
const { default: makeBackend } = (await import(module)) as { default: () => LockBackend };
const locks = createLocks(makeBackend(), { ttlMs: Number(ttlMs), waitMs: 60_000 });
const acquired = locks.lock(name).acquire();
while (!(await locks.inspect(name)).waiters.some(({ label }) => label?.endsWith(`:${process.pid}`)));
process.stdout.write('waits\n');
const lease = await acquired;
process.stdout.write(`${Date.now()}\n`);
await lease.release();
await locks.close();
process.exit();
