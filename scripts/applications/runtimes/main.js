// Runs under Node, Bun and Deno, and with old clients: `main.js <backend>` says what its locks did, and ends by itself.
import { createLocks, isLockError } from '@locks/core';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from './stores.js';

const opened = [await openStore(process.argv[2]), await openStore(process.argv[2])];
const [first, second] = opened.map(({ backend }) => createLocks(backend, { ttlMs: 2_500 }));
const name = `runtimes-${process.pid}`;

// Nobody else holds for longer than a ttl: renewals keep the lease.
const lease = await first.lock(name).acquire();
const refused = await second.lock(name).tryAcquire();
await sleep(2_800);
const isKept = !lease.signal.aborted;
const timeout = await second
  .lock(name)
  .acquire({ waitMs: 1_500 })
  .catch((error) => error);
const wait = second.lock(name).acquire({ waitMs: 10_000 });
await sleep(50);
const releasedAt = performance.now();
await lease.release();
const next = await wait;
const handOffMs = performance.now() - releasedAt;
await next.release();

// Both take turns at a counter that a lost update would show.
let counter = 0;
const increment = async () => {
  const before = counter;
  await sleep(1);
  counter = before + 1;
};
await Promise.all(
  Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).lock(name).run(increment)),
);
// Asynchronous context: a run inside a run re-enters, also across awaits.
const reentrant = first.lock(name, { reentrant: true });
const holdCount = await reentrant.run(async () => {
  await sleep(5);
  return reentrant.run((inner) => inner.holdCount);
});

await Promise.all([first.close(), second.close()]);
for (const { end } of opened) await end();
console.log(
  JSON.stringify({
    refused: refused === undefined,
    isKept,
    timeout: isLockError(timeout) ? timeout.code : String(timeout),
    isHandedOn: handOffMs < 1_000,
    counter,
    holdCount,
  }),
);
