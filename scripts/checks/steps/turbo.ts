import { turboOptions } from '../../launcher/build.mjs';
import { problemOf } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Runs before all other steps: they read `dist/`. */
export const buildStep: Step = {
  name: 'build',
  about: 'all packages are built',
  kind: 'static',
  run: async () => resultOf([await turbo('build')]),
};

export const lintStep: Step = {
  name: 'lint',
  about: 'oxlint, with the type-aware promise rules',
  kind: 'static',
  async run() {
    // This file belongs to no package.
    const args = ['--type-aware', '--deny-warnings', 'tsdown.config.ts'];
    return resultOf([
      await turbo('lint'),
      { name: 'tsdown.config.ts', problem: await problemOf('oxlint', args) },
    ]);
  },
};

export const typesStep: Step = {
  name: 'types',
  about: 'tsc over every package with its tests, and over scripts/',
  kind: 'static',
  // Packages are checked beside each other: the threads of one would only repeat each other's work.
  run: async () => resultOf([await turbo('types', '--singleThreaded')]),
};

/** Runs a task of turbo.json in every package; turbo's cache has the result of what has not changed since. */
async function turbo(task: string, ...more: readonly string[]) {
  const args = ['run', task, ...turboOptions, '--continue=dependencies-successful'];
  if (more.length > 0) args.push('--', ...more);
  return { name: `turbo run ${task}`, problem: await problemOf('turbo', args) };
}
