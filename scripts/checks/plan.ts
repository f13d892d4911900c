import type { Step } from './step.ts';
import { alertsStep } from './steps/alerts.ts';
import { apiStep } from './steps/api.ts';
import { applicationSteps } from './steps/applications.ts';
import { boardStep } from './steps/board.ts';
import { changesetStep } from './steps/changesets.ts';
import { consumerSteps } from './steps/consumers.ts';
import { layersStep } from './steps/layers.ts';
import { modelStep } from './steps/model.ts';
import { packageSteps } from './steps/packages.ts';
import { readmeStep } from './steps/readme.ts';
import { releaseStep } from './steps/release.ts';
import { simulationStep } from './steps/simulation.ts';
import { siteSteps } from './steps/site.ts';
import { sizeStep } from './steps/size.ts';
import { sourceSteps } from './steps/source.ts';
import { suiteOnNodesStep } from './steps/suite-on-nodes.ts';
import { quickConformanceStep, testSteps } from './steps/tests.ts';
import { wordsStep } from './steps/words.ts';
import { workflowsStep } from './steps/workflows.ts';

/** Every step of `npm test`, in the order of the summary. */
export const steps: readonly Step[] = [
  ...sourceSteps,
  wordsStep,
  layersStep,
  workflowsStep,
  modelStep,
  alertsStep,
  ...packageSteps,
  apiStep,
  sizeStep,
  ...consumerSteps,
  ...applicationSteps,
  readmeStep,
  ...siteSteps,
  changesetStep,
  releaseStep,
  simulationStep,
  suiteOnNodesStep,
  boardStep,
  ...testSteps,
];

/** Tests of what other tests stand on, and of the command, which take longer than all others: who changes neither need not wait for them. */
const LEFT_OUT = new Set(['unit:test-servers', 'unit:simulation', 'unit:cli']);

/** The steps of `npm test -- --quick`, for which a contributor waits after each change. The longest begins first. */
export const quickSteps: readonly Step[] = [
  quickConformanceStep,
  ...steps.filter(
    ({ name }) =>
      ['format', 'lint', 'types', 'words', 'layers'].includes(name) ||
      (name.startsWith('unit:') && !LEFT_OUT.has(name)),
  ),
];
