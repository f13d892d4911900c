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
  run: async () => resultOf([await turbo('types')]),
};

/** Runs a task of turbo.json in every package; turbo's cache has the result of what has not changed since. */
async function turbo(task: string) {
  const args = ['run', task, ...turboOptions, '--continue=dependencies-successful'];
  return { name: `turbo run ${task}`, problem: await problemOf('turbo', args) };
}
