import { appendFileSync } from 'node:fs';
import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import { sqliteBackend } from '../src/index.ts';

// Takes and gives back a few locks as fast as it can, with all kinds of calls between, and writes down what it holds.
const [path = '', log = '', ttl = '', ...resources] = process.argv.slice(2);
const ttlMs = Number(ttl);
const backend = sqliteBackend({ path });
const call: Call = { now: () => performance.now(), deadline: Infinity };
let count = 0;
let stopping = false;

async function acquire(request: AcquireRequest): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(request, true, call);
    if (attempt.status === 'granted') return attempt.grant;
    const grant = await backend.awaitTurn?.(request, call);
    if (grant !== undefined) return grant;
  }
}

async function work(resource: string): Promise<void> {
  while (!stopping) {
    count += 1;
    const acquisitionId = `${process.pid}-${count}`;
    const grant = await acquire({ resource, acquisitionId, mode: { kind: 'exclusive' }, ttlMs });
    // Valid as core reckons it. A process that stood still until then has nothing to write.
    const validUntil = grant.countedFrom + ttlMs;
    const note = (what: string): void => {
      if (performance.now() >= validUntil) return;
      appendFileSync(
        log,
        `${JSON.stringify({ resource, token: `${grant.fencingToken}`, what, at: `${process.hrtime.bigint()}` })}\n`,
      );
    };
    note('enter');
    if (count % 3 === 0) await backend.renew([{ grant, ttlMs }], call);
    if (count % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    note('exit');
    await backend.release(grant, call);
  }
}

process.on('message', () => {
  stopping = true;
});
await Promise.all(resources.map(work));
await backend.close();
process.disconnect();
