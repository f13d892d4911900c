// Own code: turbo ends what it has started, not what that left in another session.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from './root.mjs';
import { say } from './say.mjs';

const endByItselfMs = 3_000;

/**
 * Runs a task so that nothing of it is left afterwards, however it ends: its processes carry a mark in their
 * environment by which they are found again (Linux), and its temporary files go to one folder. A guardian, a shell in
 * a session of its own, kills these processes and deletes the folder when it is told to, or when this process is gone.
 * @param {NodeJS.ProcessEnv} env
 * @param {(env: NodeJS.ProcessEnv) => Promise<number>} task
 * @returns {Promise<number>} the exit code: the task's own, or 1 if it ended well but left processes behind
 */
export async function leavingNothingBehind(env, task) {
  if (process.platform === 'win32') return task(env);
  // Starts with the mark of the run that we are part of, so that the outer run finds these processes too.
  const mark = [env['LOCKS_RUN'], randomBytes(6).toString('hex')].filter(Boolean).join('.');
  const guardian = spawn('sh', [join(root, 'test-servers/src/guardian.sh'), tmpdir()], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const ended = once(guardian, 'exit');
  guardian.stdin.on('error', () => undefined);
  guardian.stdin.write(`run ${mark}\n`);
  const [line] = await Promise.race([once(guardian.stdout, 'data'), ended.then(() => [''])]);
  const folder = String(line).trimEnd();
  if (folder === '') throw new Error(`No temporary folder could be made: is ${tmpdir()} writable?`);
  // Some servers refuse to run as root, and tests drop their rights: they must get through to their own folders.
  chmodSync(folder, 0o711);
  let exitCode = 1;
  /** @type {{ pid: string, command: string }[]} */
  let left = [];
  try {
    exitCode = await task({ ...env, LOCKS_RUN: mark, TMPDIR: folder });
  } finally {
    left = await leftOf(mark);
    // After a failure or an interruption leftovers are expected, after a good end they are a defect.
    if (exitCode === 0) for (const { pid, command } of left) say(`left behind, ending it: ${pid} ${command}`);
    guardian.stdin.end();
    await ended;
  }
  return exitCode === 0 && left.length > 0 ? 1 : exitCode;
}

/**
 * The processes of a run that do not end by themselves.
 * @param {string} mark
 */
async function leftOf(mark) {
  const until = Date.now() + endByItselfMs;
  let left = marked(mark);
  while (left.length > 0 && Date.now() < until) {
    await sleep(50);
    left = marked(mark);
  }
  return left;
}

/**
 * @param {string} mark
 * @returns {{ pid: string, command: string }[]}
 */
function marked(mark) {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
        if (!environment.includes(`LOCKS_RUN=${mark}`)) return [];
        return [
          { pid, command: readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim() },
        ];
      } catch {
        return []; // Ended meanwhile, or somebody else's.
      }
    });
}
