import { turboOptions } from '../../launcher/build.mjs';
import { problemOf } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Runs before all others: they read `dist/`. */
export const buildStep: Step = {
  name: 'build',
  about: 'all packages are built',
  kind: 'static',
  async run() {
    const problem = await problemOf('turbo', [
      'run',
      'build',
      ...turboOptions,
      '--continue=dependencies-successful',
    ]);
    return resultOf([{ name: 'turbo run build', problem }]);
  },
};
