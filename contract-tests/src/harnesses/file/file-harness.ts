import fs, { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineHarness, type Harness } from '@locks/core/conformance';
import { fileBackend } from '@locks/file';
import { escapeKey, type KeyAlphabet } from '@locks/record-protocol';

const FOLDER_VARIABLE = 'LOCKS_FILE_FOLDER';
/** What is done to files by their paths. */
const CALLS = ['mkdirSync', 'openSync', 'readdirSync', 'renameSync', 'statSync', 'unlinkSync'] as const;
/** That of the store. */
const ALPHABET: KeyAlphabet = {
  plain: 'abcdefghijklmnopqrstuvwxyz0123456789_-',
  escape: '=',
  maxLength: 120,
};
const GARBAGE = 'of another program';

const folder = (): string => process.env[FOLDER_VARIABLE] as string;

/** A folder of its own, which child processes find by the environment. */
export function fileHarness(module: string, name: string, watch: boolean): Harness {
  return defineHarness({
    module,
    name,
    server: 'none (a folder)',
    async setup() {
      const made = await mkdtemp(join(tmpdir(), 'locks-file-'));
      return {
        env: { [FOLDER_VARIABLE]: join(made, 'locks') },
        teardown: () => rm(made, { recursive: true, force: true }),
      };
    },
    createBackendUnder: 'none',
    createBackend: () => fileBackend(folder(), { watch }),
    faults: {
      cut: async () => failDisk(),
      async evict(resource) {
        rmSync(recordOf(resource), { recursive: true, force: true });
      },
      async corrupt(resource) {
        const backend = fileBackend(folder());
        await backend.inspect(resource, { now: () => performance.now(), deadline: Infinity });
        await backend.close();
        writeFileSync(join(ofThisBoot(), 'v', 'of-another-program'), GARBAGE);
        mkdirSync(recordOf(resource), { recursive: true });
        const pointer = `1.0.of-another-program.0-${GARBAGE.length.toString(36)}`;
        writeFileSync(join(recordOf(resource), pointer), '');
      },
    },
    // A process that stands still is passed over after two seconds.
    timing: { idleGapMs: 2_600 },
  });
}

/** Each call in the folder fails as on a disk that is being replaced. */
function failDisk(): () => Promise<void> {
  const kept = { ...fs };
  for (const call of CALLS) {
    const real = fs[call] as (...args: unknown[]) => unknown;
    Object.assign(fs, {
      [call]: (...args: unknown[]) => {
        if (!String(args[0]).startsWith(folder())) return real(...args);
        throw Object.assign(new Error(`EIO: the disk fails, ${call}`), { code: 'EIO' });
      },
    });
  }
  syncBuiltinESMExports();
  return async () => {
    for (const call of CALLS) Object.assign(fs, { [call]: kept[call] });
    syncBuiltinESMExports();
  };
}

function ofThisBoot(): string {
  const [name = ''] = readdirSync(folder()).filter((each) => each.startsWith('1.'));
  return join(folder(), name);
}

function recordOf(resource: string): string {
  return join(ofThisBoot(), 'k', escapeKey(`lock/${resource}`, ALPHABET));
}
