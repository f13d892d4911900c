import type { Step } from './step.ts';
import { sourceSteps } from './steps/source.ts';
import { testSteps } from './steps/tests.ts';

/** Every step of `npm test`, in the order of the summary. */
export const steps: readonly Step[] = [...sourceSteps, ...testSteps];
