/** `bullmq-worker.ts LOG LABEL TTL with|without`: a worker in a process of its own, which writes to the log what it does, also while it is blocked. */
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createLocks } from '@locks/core';
import { Redis } from 'ioredis';
import makeBackend from '../src/schedulers/bullmq-locks-backend.ts';
import { openLocks, startWorker } from '../src/schedulers/bullmq-long-work.ts';

const [log = '', label = '', ttl = '', thread = ''] = process.argv.slice(2);
const ttlMs = Number(ttl);
const say = (what: string): void => appendFileSync(log, `${what} ${label}\n`);
const locks = thread === 'with' ? openLocks(ttlMs) : createLocks(makeBackend(), { ttlMs });
const work = {
  isDone: async () => existsSync(`${log}.done`),
  render() {
    say('begins');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * ttlMs);
    writeFileSync(`${log}.done`, label);
    say('ends');
  },
};
const connection = new Redis(process.env['REDIS_URL'] ?? '', { maxRetriesPerRequest: null });
const worker = startWorker(
  locks,
  work,
  // BullMQ takes a job for stalled that has shown no sign of life for less than a ttl.
  { connection, lockDuration: ttlMs / 2, stalledInterval: ttlMs / 4 },
  ttlMs / 4,
);
worker.on('error', () => {});
worker.on('active', () => say('is given the job'));
worker.on('completed', () => say('completes'));
await locks.prepare();
await locks.lock('start').run(() => {});
say('is ready');
