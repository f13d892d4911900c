// One process of one version: does to locks on a shared store what its parent tells it, and answers.
import { createLocks } from '@locks/core';
import { readFile, writeFile } from 'node:fs/promises';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../runtimes/stores.js';

const { backend, end } = await openStore(process.argv[2], process.argv[3]);
const locks = createLocks(backend, { ttlMs: 2_500 });
const leases = new Map();

const lockOf = ({ name, mode = 'exclusive' }) => {
  switch (mode) {
    case 'read':
      return locks.readWriteLock(name).read;
    case 'write':
      return locks.readWriteLock(name).write;
    case 'permit':
      return locks.semaphore(name, 2);
    default:
      return locks.lock(name);
  }
};

const keep = ({ name, mode = '' }, lease) => {
  if (lease === undefined) return 'refused';
  leases.set(name + mode, lease);
  return `${lease.fencingToken ?? 'no token'}`;
};

const calls = {
  modes: () => locks.capabilities.modes,
  tryAcquire: async (what) => keep(what, await lockOf(what).tryAcquire()),
  acquire: async (what) => keep(what, await lockOf(what).acquire({ waitMs: 20_000 })),
  async refusal(what) {
    try {
      keep(what, await lockOf(what).tryAcquire());
      return 'none';
    } catch (error) {
      return error.cause?.code ?? error.code;
    }
  },
  release: ({ name, mode = '' }) => leases.get(name + mode).release(),
  isValid: ({ name, mode = '' }) => !leases.get(name + mode).signal.aborted,
  /** Reads, waits and writes a number, which a second holder at the same time would spoil. */
  async count({ name, file, times }) {
    for (let round = 0; round < times; round += 1)
      await locks.lock(name).run(
        async () => {
          const before = Number(await readFile(file, 'utf8'));
          await sleep(2);
          await writeFile(file, `${before + 1}`);
        },
        { waitMs: 20_000 },
      );
  },
  async end() {
    await locks.close();
    await end();
    setImmediate(() => process.disconnect());
  },
};

process.on('message', async ({ id, method, args }) => {
  try {
    process.send({ id, value: method === 'ready' ? true : await calls[method](...args) });
  } catch (error) {
    process.send({ id, error: { message: error.stack } });
  }
});
