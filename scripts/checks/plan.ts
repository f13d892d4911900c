import type { Step } from './step.ts';
import { applicationSteps } from './steps/applications.ts';
import { claimsStep } from './steps/claims.ts';
import { consumerSteps } from './steps/consumers.ts';
import { layersStep } from './steps/layers.ts';
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

/**
 * What a change needs; no step of it needs more than Node, npm and the packages of Debian. The tests of the other packages found no bug of
 * the track record: `--changed` runs them where their package changed.
 */
const OF_A_CHANGE =
  /^(format|lint|types|generated|words|versions|claims|layers|api|changesets|unit:(core|quorum|cohort|memory|record-protocol|mysql|nats|redis-protocol|redis-ioredis|postgres|sqlite|etcd|zookeeper|once|leader|simulation)|contract:conformance|simulation:short|readme|consumers:checkout|demo)$/;

/** Of these the ones that find most in a minute. */
const OF_THE_LOOP =
  /^(format|lint|types|words|versions|claims|layers|unit:(core|memory|record-protocol|redis-ioredis|once))$/;

const everything = steps.filter((step) => !step.onlyWhenNamed);
const isOfAChange = ({ name }: Step) => OF_A_CHANGE.test(name);
const isOfAPackage = ({ name }: Step) => /^unit:[^:]+$/.test(name);

/** What runs where no step is named: by `npm test`, and with one of these options; of `--changed` the steps of what changed. */
export const plans: Readonly<Record<'' | '--all' | '--rest' | '--quick' | '--changed', readonly Step[]>> = {
  '': everything.filter(isOfAChange),
  '--all': everything,
  '--rest': everything.filter((step) => !isOfAChange(step)),
  '--quick': [quickConformanceStep, ...everything.filter(({ name }) => OF_THE_LOOP.test(name))],
  '--changed': everything.filter((step) => isOfAChange(step) || isOfAPackage(step)),
};
