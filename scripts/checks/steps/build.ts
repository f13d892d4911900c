import { turboOptions } from '../../launcher/build.mjs';
import { problemOf } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Runs before all other steps: they read `dist/`. */
export const buildStep: Step = {
  name: 'build',
  about: 'all packages are built',
  kind: 'alone',
  async run() {
    const args = ['run', 'build', ...turboOptions, '--continue=dependencies-successful'];
    return resultOf([{ name: 'turbo run build', problem: await problemOf('turbo', args) }]);
  },
};
