import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeGuardedFolder } from './guarded-folder.mjs';
import { say } from './say.mjs';

const endByItselfMs = 3_000;
const endWhenAskedMs = 3_000;

/**
 * Runs a task so that nothing of it is left afterwards, however it ends: its processes carry a mark in their
 * environment by which they are found again (Linux), and its temporary files go to one folder. Where this process is
 * killed and cannot clean up, the guardian of that folder does.
 * @param {NodeJS.ProcessEnv} env
 * @param {(env: NodeJS.ProcessEnv) => Promise<number>} task
 * @returns {Promise<number>} the exit code: the task's own, or 1 if it ended well but left processes behind
 */
export async function leavingNothingBehind(env, task) {
  // Starts with the mark of the run that we are part of, so that the outer run finds these processes too.
  const mark = [env['LOCKS_RUN'], randomBytes(6).toString('hex')].filter(Boolean).join('.');
  const folder = await makeGuardedFolder(mark);
  let ended = false;
  try {
    const exitCode = await task({ ...env, LOCKS_RUN: mark, TMPDIR: folder });
    ended = exitCode === 0;
    const found = await sweep(mark, ended);
    return ended && found ? 1 : exitCode;
  } finally {
    if (!ended) await sweep(mark, false);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Ends what is left of a run.
 * @param {string} mark
 * @param {boolean} report after an interruption leftovers are expected, after a good end they are a defect
 */
async function sweep(mark, report) {
  if ((await goneWithin(mark, report ? endByItselfMs : 500)).length === 0) return false;
  for (const { pid, command } of marked(mark)) {
    if (report) say(`left behind, ending it: ${pid} ${command}`);
    send(pid, 'SIGTERM');
  }
  for (const { pid } of await goneWithin(mark, endWhenAskedMs)) {
    send(pid, 'SIGCONT');
    send(pid, 'SIGKILL');
  }
  await goneWithin(mark, endWhenAskedMs);
  return true;
}

/**
 * @param {string} mark
 * @param {number} limitMs
 */
async function goneWithin(mark, limitMs) {
  const until = Date.now() + limitMs;
  let left = marked(mark);
  while (left.length > 0 && Date.now() < until) {
    await sleep(50);
    left = marked(mark);
  }
  return left;
}

/**
 * @param {string} mark
 * @returns {{ pid: number, command: string }[]}
 */
function marked(mark) {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const environment = readFileSync(`/proc/${name}/environ`, 'latin1');
        if (!environment.includes(`LOCKS_RUN=${mark}`)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ').trim();
        return [{ pid: Number(name), command }];
      } catch {
        return []; // Ended meanwhile, or somebody else's.
      }
    });
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
function send(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // Ended meanwhile.
  }
}
