import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import { expect, it, onTestFinished } from 'vitest';
import { fileBackend } from '../src/index.ts';
import { bootFolder, temporaryFolder, until } from './fixture.ts';

const OPTIONS = { ttlMs: 1_500, waitMs: 20_000 };

/** Two processes, as far as the folder can tell. */
function managers(folder: string) {
  const [one, other] = [createLocks(fileBackend(folder)), createLocks(fileBackend(folder))];
  onTestFinished(() => Promise.all([one.close(), other.close()]).then(() => undefined));
  return [one, other] as const;
}

it.each([
  ['deleted', true, (folder: string) => rmSync(folder, { recursive: true })],
  ['moved away', true, (folder: string) => renameSync(folder, `${folder}.away`)],
  [
    'emptied of its values, as by what cleans /tmp',
    false,
    (folder: string) => {
      const values = join(bootFolder(folder), 'v');
      for (const name of readdirSync(values)) rmSync(join(values, name));
    },
  ],
])(
  'a folder that is %s while a lock is held and waited for stops nobody for ever',
  async (_, isTold, hurt) => {
    const folder = join(temporaryFolder(), 'locks');
    const [one, other] = managers(folder);
    const lease = await one.lock('a').acquire(OPTIONS);
    const waiting = other.lock('a').acquire({ waitMs: 30_000, ttlMs: 1_000 });
    await until(async () => (await one.inspect('a')).waiters.length === 1);
    hurt(folder);
    const isAborted = until(() => lease.signal.aborted, 2_500).catch(() => false);
    // Within the ttl of its lease, whoever may hold the lock then; values that were deleted come back with a renewal.
    expect(await isAborted).toBe(isTold);
    if (!isTold) await lease.release();
    const next = await waiting.catch(() => other.lock('a').acquire(OPTIONS));
    await next.release();
    await one.lock('a').run(() => undefined, OPTIONS);
  },
);
