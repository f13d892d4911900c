import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { root } from './root.mjs';
import { passSignalsTo, throwIfInterrupted } from './signals.mjs';
import { StepFailed } from './step-failed.mjs';

/**
 * @typedef {object} ChildOptions
 * @property {NodeJS.ProcessEnv} [env]
 * @property {string} [cwd]
 * @property {'inherit' | 'to-stderr' | 'quiet'} [output] `quiet`: kept, and given back as `output`.
 */

/**
 * Runs a command to its end. The child leads a group of its own: a Ctrl-C reaches it through us exactly once, and
 * whatever it started can be ended with it.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {ChildOptions} [options]
 * @returns {Promise<{ exitCode: number, output: string }>}
 */
export async function runChild(command, args, { env, cwd = root, output = 'inherit' } = {}) {
  throwIfInterrupted();
  const child = spawn(command, args, {
    cwd,
    env: env ?? process.env,
    stdio: stdioFor(output),
    detached: process.platform !== 'win32',
  });
  /** @type {Buffer[]} */
  const chunks = [];
  child.stdout?.on('data', (chunk) => chunks.push(chunk));
  child.stderr?.on('data', (chunk) => chunks.push(chunk));
  passSignalsTo(child);

  const exitCode = await new Promise((resolve, reject) => {
    child.once('error', (error) => {
      const missing = 'code' in error && error.code === 'ENOENT';
      reject(missing ? new StepFailed(`"${command}" was not found on the PATH`, 127) : error);
    });
    child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
  throwIfInterrupted();
  return { exitCode, output: Buffer.concat(chunks).toString() };
}

/**
 * @param {'inherit' | 'to-stderr' | 'quiet'} output
 * @returns {import('node:child_process').StdioOptions}
 */
function stdioFor(output) {
  if (output === 'inherit') return 'inherit';
  if (output === 'to-stderr') return ['ignore', 2, 2];
  return ['ignore', 'pipe', 'pipe'];
}
