import { runChild } from './run-child.mjs';
import { StepFailed } from './step-failed.mjs';

/**
 * Builds packages and what they depend on; what is built already is taken from turbo's local cache.
 * @param {readonly string[]} filters turbo filters; none for everything
 * @param {NodeJS.ProcessEnv} env
 */
export async function build(filters, env) {
  const { exitCode, output } = await runChild(
    'turbo',
    ['run', 'build', ...turboOptions, ...filters.map((name) => `--filter=${name}`)],
    {
      env,
      output: 'quiet',
    },
  );
  if (exitCode !== 0) throw new StepFailed(`${output}\nthe build failed (exit code ${exitCode})`, exitCode);
}

// Nothing leaves the machine: only the local cache.
export const turboOptions = [
  '--cache=local:rw',
  '--output-logs=errors-only',
  '--no-update-notifier',
  '--concurrency=100%',
];
