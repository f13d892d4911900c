import { Locks } from '../../src/create-locks.ts';
import { renewalThread } from '../../src/renewal-thread/index.ts';
import { capabilities, scriptedBackend } from '../scripted-backend.ts';

// A process in which nothing but core could keep it alive while a lease is taken back from the thread, which waits for its renewal.
const module = new URL('thread-backend.ts?answerMs=200', import.meta.url);
const backend = scriptedBackend({ capabilities: { ...capabilities, renewal: 'any-client' } });
const locks = new Locks(backend, {
  ttlMs: 600,
  renewalThread: renewalThread(module, { maxBlockedMs: 60_000 }),
});
const lease = await locks.lock('a').acquire();
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 220);
await lease.renew(5_000);
process.stdout.write('renewed');
