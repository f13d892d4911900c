// A process that uses locks and closes them when it is told to: `frozen-main.ts URL holder|waiter|starter`.
import { createLocks } from '@locks/core';
import { mysqlBackend } from '../src/index.ts';

const [url = '', role] = process.argv.slice(2);
const locks = createLocks(mysqlBackend(url));
const stop = new AbortController();

process.on('message', (said) => {
  if (said === 'close') void close();
  else void start();
});
if (role === 'starter') process.send?.('ready');
else await start();

async function start(): Promise<void> {
  const acquires = ['a', 'b', 'c'].map((name) =>
    locks.lock(role === 'waiter' ? 'held' : name).acquire({ signal: stop.signal, waitMs: 60_000 }),
  );
  for (const acquire of acquires) acquire.catch(() => undefined);
  if (role === 'holder') await Promise.all(acquires);
  if (role === 'waiter') {
    while ((await locks.inspect('held')).waiters.length < acquires.length);
  }
  process.send?.('ready');
}

async function close(): Promise<void> {
  stop.abort(new Error('it is over'));
  await locks.close().catch(() => undefined);
  process.disconnect();
}
