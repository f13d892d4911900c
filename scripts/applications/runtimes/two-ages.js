// `two-ages.js <backend>`: a process holds a lock that is younger than this one by more than the ttl. Where the store's time is a clock of the
// machine, it must be the same in both: a clock that counts from the start of each has the lease end before it began.
import { createLocks } from '@locks/core';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openStore } from './stores.js';

const TTL_MS = 2_000;
const [, , store, role = 'older'] = process.argv;
const place = join(tmpdir(), `locks-two-ages-${process.pid}`);
process.env.LOCKS_FOLDER ??= place;
process.env.LOCKS_SQLITE_FILE ??= `${place}.sqlite`;
const { backend } = await openStore(store);
const locks = createLocks(backend, { ttlMs: TTL_MS });

if (role === 'younger') {
  const lease = await locks.lock('age').acquire();
  console.log('holds');
  await once(process.stdin, 'data');
  console.log(lease.signal.aborted ? 'lost' : 'held');
} else {
  await sleep(1.5 * TTL_MS);
  const ofDeno = 'deno' in process.versions ? ['run', '--allow-all', '--node-modules-dir=manual'] : [];
  const args = [...ofDeno, fileURLToPath(import.meta.url), store, 'younger'];
  const younger = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(younger.stdout)[Symbol.asyncIterator]();
  const { value: said } = await lines.next();
  const isRefused = (await locks.lock('age').tryAcquire()) === undefined;
  younger.stdin.end('go on\n');
  console.log(JSON.stringify({ said, isRefused, outcome: (await lines.next()).value }));
}
process.exit();
