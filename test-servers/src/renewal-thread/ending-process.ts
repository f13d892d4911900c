import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { renewalThread } from '@locks/core/renewal-thread';

// A process that holds a lock with a renewal thread, and ends: ending-process.ts MODULE HOW
const [module = '', how] = process.argv.slice(2);
const { default: makeBackend } = (await import(module)) as { default: () => LockBackend };
const thread = renewalThread(module, { maxBlockedMs: 60_000 });
const locks = createLocks(makeBackend(), { ttlMs: 5_000, renewalThread: thread });
await locks.lock(`ends:${how}`).acquire();
switch (how) {
  case 'exit':
    process.exit();
    break;
  case 'throw':
    throw new Error('thrown on purpose');
  case 'close':
    await locks.close();
    process.stdout.write('closed\n');
    // The client of the application is its own affair.
    process.exit();
    break;
  default:
    throw new Error(`no way to end: ${how}`);
}
