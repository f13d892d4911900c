import type { Step } from './step.ts';
import { applicationSteps } from './steps/applications.ts';
import { claimsStep } from './steps/claims.ts';
import { consumerSteps } from './steps/consumers.ts';
import { layersStep } from './steps/layers.ts';
import { modelStep } from './steps/model.ts';
import { packageSteps } from './steps/packages.ts';
import { matrixStep, programSteps } from './steps/programs.ts';
import { readmeSteps } from './steps/readme.ts';
import { releaseSteps } from './steps/release.ts';
import { sourceSteps } from './steps/source.ts';
import { quickConformanceStep, testSteps } from './steps/tests.ts';
import { versionsStep } from './steps/versions.ts';
import { wordsStep } from './steps/words.ts';
import { workflowsStep } from './steps/workflows.ts';

/** Every step of `npm run test:all`, in the order of the summary. */
export const steps: readonly Step[] = [
  ...sourceSteps,
  wordsStep,
  versionsStep,
  claimsStep,
  layersStep,
  workflowsStep,
  modelStep,
  ...packageSteps,
  ...consumerSteps,
  ...applicationSteps,
  ...readmeSteps,
  ...releaseSteps,
  ...programSteps,
  ...testSteps,
  matrixStep,
  quickConformanceStep,
];

/** What a change needs; no step of it needs more than Node, npm and the packages of Debian. */
const OF_A_CHANGE =
  /^(format|lint|types|generated|words|versions|claims|layers|api|changesets|unit:(?!test-servers)[^:]+|contract:conformance|contract:mutants:safety|simulation:short|readme|consumers:(modules|checkout)|demo)$/;

/** Without the tests of what other tests stand on and of the command, which take longest, and those that need another server than Redis. */
const OF_THE_LOOP =
  /^(format|lint|types|words|versions|claims|layers|unit:(?!test-servers|simulation|cli)[^:]+)$/;

const everything = steps.filter((step) => !step.onlyWhenNamed);
const isOfAChange = ({ name }: Step) => OF_A_CHANGE.test(name);
const isOfTheLoop = ({ name, needs = [] }: Step) =>
  OF_THE_LOOP.test(name) && needs.every((server) => server === 'redis');

/** What runs where no step is named: by `npm test`, and with one of these options. */
export const plans: Readonly<Record<'' | '--all' | '--rest' | '--quick', readonly Step[]>> = {
  '': everything.filter(isOfAChange),
  '--all': everything,
  '--rest': everything.filter((step) => !isOfAChange(step)),
  '--quick': [quickConformanceStep, ...everything.filter(isOfTheLoop)],
};
