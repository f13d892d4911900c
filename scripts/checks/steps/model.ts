import { checkModel, missingForModel } from '../../model/check-model.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Without Spin or a C compiler the step is reported as not run: a machine with Node and npm only passes. */
export const modelStep: Step = {
  name: 'model',
  about:
    'the model of the Redis protocol: every order of events in its scopes, and every planted error is found',
  kind: 'static',
  onlyWhenNamed: true,
  async run() {
    const missing = await missingForModel();
    if (missing !== undefined) return { passed: 0, failed: 0, output: missing, notRun: true };
    const checks = await checkModel({});
    const searched = checks.filter(({ figure }) => figure !== 'found');
    return resultOf(
      checks,
      searched.map(({ name, figure }) => `${name}: ${figure}`),
    );
  },
};
