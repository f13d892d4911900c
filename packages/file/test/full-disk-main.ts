import { closeSync, existsSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import type { SlotEntry } from '@locks/core/backend';
import { fileBackend, fileResults, fileSlots } from '../src/index.ts';
import { lock as lockFile } from '../src/proper-lockfile.ts';

// Fills the small disk that DISK is, in bytes or in inodes, and tells what locks, slots, results and lockfiles do then and afterwards.
const [disk = '', how = ''] = process.argv.slice(2);
const folder = join(disk, 'locks');
const filler = join(disk, 'filler');
const file = join(disk, 'settings.json');
writeFileSync(file, '{}');
const entry = (token: bigint): SlotEntry => ({
  slot: `2030-01-0${token}`,
  state: 'done',
  token,
  label: 'me',
  at: 1,
});
const locks = createLocks(fileBackend(folder));
const [slots, results] = [fileSlots(folder), fileResults(folder)];
/** Takes more than what is left of the last block of a file. */
const large = 'x'.repeat(10_000);

/** The code of the failure, or of its cause. */
async function outcome(act: Promise<unknown>): Promise<unknown> {
  return act.then(
    (value) => value ?? 'done',
    (error: { code: string; cause?: { code: string } }) =>
      error.code === 'LOCK_BACKEND' ? error.cause?.code : error.code,
  );
}

function fill(): void {
  try {
    if (how === 'inodes') for (let n = 0; ; n += 1) writeFileSync(`${filler}-${n}`, '');
    const descriptor = openSync(filler, 'w');
    try {
      for (;;) writeSync(descriptor, large);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

function free(): void {
  for (const name of readdirSync(disk)) if (name.startsWith('filler')) rmSync(join(disk, name));
}

/** New slots and locks take two inodes: they fail when they have made half of what they need. */
async function newSlot(): Promise<unknown> {
  if (how === 'inodes') rmSync(`${filler}-0`);
  return outcome(slots.write('new', entry(2n)));
}

/** Locks that nobody had before, until one of them fails or they are many. */
async function newLocks(): Promise<unknown> {
  let last: unknown;
  for (let n = 0; n < 100 && last !== 'FULL'; n += 1)
    last = await outcome(locks.lock(`new ${n}`, { label: 'x'.repeat(256) }).run(() => 'ran'));
  return last;
}

await slots.write('job', entry(1n));
await results.set('known', 'before', 1n, 60_000);
const lease = await locks.lock('held').acquire();
fill();
const full = {
  slot: await outcome(slots.write('job', entry(2n))),
  newSlot: await newSlot(),
  result: await outcome(results.set('new', large, 2n, 60_000)),
  lock: await newLocks(),
  lockfile: await outcome(lockFile(file)),
  isLockfileLeft: existsSync(`${file}.lock`),
  slotNow: (await slots.read('job')).entry?.slot,
  newSlotNow: (await slots.read('new')).entry?.slot,
  resultNow: await results.get('known'),
  newResultNow: await results.get('new'),
  isHeld: await locks.isLocked('held'),
};
const left = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => /(^|\/)t\./.test(name));
const slotFiles = readdirSync(join(folder, 'once'), { recursive: true });
free();
await lease.release();
const after = {
  slot: await outcome(slots.write('job', entry(3n))),
  newSlot: await outcome(slots.write('new', entry(3n))),
  result: await outcome(results.set('new', large, 3n, 60_000)),
  lock: await outcome(locks.lock('held').run(() => 'ran')),
  lockfile: await outcome(lockFile(file).then((unlock) => unlock())),
  slotNow: (await slots.read('job')).entry?.slot,
};
await locks.close();
console.log(JSON.stringify({ full, left, slotFiles, after }));
