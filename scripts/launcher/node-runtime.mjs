import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './root.mjs';
import { StepFailed } from './step-failed.mjs';

const execute = promisify(execFile);
const neededMajor = 24;

/**
 * The Node that runs tests and tools: the one that came with the packages, else the host's if it is new enough.
 * @returns {Promise<string>} the executable
 */
export async function workspaceNode() {
  const own = join(root, 'node_modules/.bin/node');
  const executable = existsSync(own) ? own : process.execPath;
  const { stdout } = await execute(executable, ['--version']);
  const major = Number(/^v(\d+)/.exec(stdout)?.[1]);
  if (major >= neededMajor) return executable;
  throw new StepFailed(
    `The workspace needs Node ${neededMajor} or newer; the host's is ${stdout.trim()}, and the registry packages bring ` +
      `none for ${process.platform}-${process.arch}. Install Node ${neededMajor} (https://nodejs.org), put it first on ` +
      `the PATH and run the command again.`,
  );
}
