/** Takes and frees locks of a library for Node, or ours, as it is told: the protocol is in lock-process.ts. */
import { createInterface } from 'node:readline';
import { createLocks, type Lease } from '@locks/core';
import { type Library, libraries, openClient } from '../harnesses/redis/open-client.ts';
import { openers } from '../lab/peers/openers.ts';
import type { PeerAcquire } from '../lab/peers/peer-lock.ts';
import type { PeerName } from '../lab/peers/peer-names.ts';

const [library = '', address = '', ttl = '', prefix, maxPollMs] = process.argv.slice(2);
const [host = '', port = ''] = address.split(':');
const ttlMs = Number(ttl);
const acquire = prefix === undefined ? await theirs(library as PeerName) : await ours(library as Library);
let held: { release(): Promise<unknown> } | undefined;

console.log('ready');
for await (const line of createInterface(process.stdin)) {
  const [command, name = '', waitMs] = line.split(' ');
  try {
    if (command === 'take') {
      held = await acquire(name, Number(waitMs));
      console.log(held === undefined ? 'failed: held' : 'taken');
    } else {
      await held?.release();
      console.log('freed');
    }
  } catch (error) {
    console.log(`failed ${String(error).replaceAll('\n', ' ')}`);
  }
}
process.exit();

async function theirs(name: PeerName): Promise<PeerAcquire> {
  const { open } = await openers[name]();
  return open({ host, port: Number(port) }, ttlMs);
}

async function ours(name: Library): Promise<PeerAcquire> {
  if (!(libraries as readonly Library[]).includes(name)) throw new TypeError(`${name} is no library of ours`);
  const client = await openClient(name, { kind: 'standalone', url: `redis://${address}` });
  const backend = client.backend({ prefix: '', maxPollMs: Number(maxPollMs) });
  const locks = createLocks(backend, { ttlMs });
  return async (resource, waitMs): Promise<Lease | undefined> => {
    const lock = locks.lock(`${prefix}${resource}`);
    return waitMs === 0 ? lock.tryAcquire() : lock.acquire({ waitMs });
  };
}
