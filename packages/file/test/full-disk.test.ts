import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryFolder } from './fixture.ts';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('full-disk-main.ts', import.meta.url));

/** Mounts need such a user. The disk is in a namespace of its own, and ends with the process. */
it.runIf(process.platform === 'linux' && process.getuid?.() === 0).each([
  ['bytes', 'size=256k'],
  ['inodes', 'size=4m,nr_inodes=100'],
])(
  'a disk without free %s fails slots, results, locks and lockfiles, keeps what was written, and works again when there is space',
  async (how, options) => {
    const disk = temporaryFolder();
    const script = 'mount -t tmpfs -o "$1" none "$2" && exec "$3" "$4" "$2" "$5"';
    const { stdout } = await run('unshare', [
      '--mount',
      'sh',
      '-c',
      script,
      'sh',
      options,
      disk,
      process.execPath,
      MAIN,
      how,
    ]);
    expect(JSON.parse(stdout)).toEqual({
      full: {
        slot: 'FULL',
        newSlot: 'FULL',
        result: 'FULL',
        lock: 'FULL',
        lockfile: 'ENOSPC',
        isLockfileLeft: false,
        slotNow: '2030-01-01',
        resultNow: 'before',
        isHeld: true,
      },
      left: [],
      slotFiles: ['job', 'job/1'],
      after: {
        slot: true,
        newSlot: true,
        result: 'done',
        lock: 'ran',
        lockfile: 'done',
        slotNow: '2030-01-03',
      },
    });
  },
);
