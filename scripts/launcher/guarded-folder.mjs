import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './root.mjs';

/**
 * Makes the temporary folder of a run, together with a guardian: a shell in a session of its own that kills the
 * processes of the run and deletes the folder once this process is gone, whatever ended it.
 * @param {string} mark what the environment of the processes of the run has as LOCKS_RUN
 * @returns {Promise<string>}
 */
export async function makeGuardedFolder(mark) {
  if (process.platform === 'win32') return mkdtempSync(join(tmpdir(), 'locks-'));
  const guardian = spawn('sh', [join(root, 'test-servers/src/guardian.sh'), tmpdir()], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  guardian.stdin.on('error', () => undefined);
  guardian.stdin.write(`run ${mark}\n`);
  /** @type {string} */
  const folder = await new Promise((resolve, reject) => {
    guardian.once('error', reject);
    guardian.once('exit', () =>
      reject(new Error(`No temporary folder could be made: is ${tmpdir()} writable?`)),
    );
    guardian.stdout.once('data', (line) => resolve(String(line).trimEnd()));
  });
  // The guardian keeps this process alive by nothing: its end is what the guardian waits for.
  guardian.stdout.destroy();
  guardian.unref();
  if ('unref' in guardian.stdin && typeof guardian.stdin.unref === 'function') guardian.stdin.unref();
  // Some servers refuse to run as root, and tests drop their rights: they must get through to their own folders.
  chmodSync(folder, 0o711);
  return folder;
}
