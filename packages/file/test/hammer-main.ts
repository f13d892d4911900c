import { appendFileSync } from 'node:fs';
import type { AcquireRequest, Call, Grant, LockMode } from '@locks/core/backend';
import { fileBackend } from '../src/index.ts';

// Acquires and releases a few locks as fast as it can, and writes down what it holds.
const [folder = '', log = '', ttl = '', ...resources] = process.argv.slice(2);
const ttlMs = Number(ttl);
const backend = fileBackend(folder);
const call: Call = { now: () => performance.now(), deadline: Infinity };
let count = 0;
let hasHeld = false;
let isStopping = false;

async function acquire(request: AcquireRequest): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(request, true, call);
    if (attempt.status === 'granted') return attempt.grant;
    const grant = await backend.awaitTurn?.(request, call);
    if (grant !== undefined) return grant;
  }
}

async function work(resource: string): Promise<void> {
  while (!isStopping) {
    count += 1;
    const kind = resource.startsWith('r') && Math.random() < 0.7 ? 'shared' : 'exclusive';
    const mode: LockMode = { kind };
    const grant = await acquire({ resource, acquisitionId: `${process.pid}-${count}`, mode, ttlMs });
    // Valid as core counts it. A process that stood still until then has nothing to write.
    const validUntil = grant.countedFrom + ttlMs;
    const note = (what: string): void => {
      const [token, at] = [`${grant.fencingToken}`, `${process.hrtime.bigint()}`];
      const leftMs = validUntil - performance.now();
      if (leftMs <= 0) return;
      // A killed process may leave half a line: the next one begins a line of its own.
      appendFileSync(log, `\n${JSON.stringify({ resource, kind, token, what, at, leftMs })}\n`);
    };
    note('enter');
    if (!hasHeld) process.send?.('working');
    hasHeld = true;
    if (count % 3 === 0) await backend.renew([{ grant, ttlMs }], call);
    if (count % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    note('exit');
    await backend.release(grant, call);
  }
}

process.on('message', () => {
  isStopping = true;
});
// Two for each resource, so that one process has several waiters of a resource, too.
await Promise.all([...resources, ...resources].map(work));
await backend.close();
process.disconnect();
