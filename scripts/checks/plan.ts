import type { Step } from './step.ts';
import { apiStep } from './steps/api.ts';
import { changesetStep } from './steps/changesets.ts';
import { consumerSteps } from './steps/consumers.ts';
import { packageSteps } from './steps/packages.ts';
import { readmeStep } from './steps/readme.ts';
import { sizeStep } from './steps/size.ts';
import { sourceSteps } from './steps/source.ts';
import { suiteOnNodesStep } from './steps/suite-on-nodes.ts';
import { testSteps } from './steps/tests.ts';

/** Every step of `npm test`, in the order of the summary. */
export const steps: readonly Step[] = [
  ...sourceSteps,
  ...packageSteps,
  apiStep,
  sizeStep,
  ...consumerSteps,
  readmeStep,
  changesetStep,
  suiteOnNodesStep,
  ...testSteps,
];
