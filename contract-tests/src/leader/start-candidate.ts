import type { CallableProcess } from '@locks/core/conformance/process';
import { startWithSetup } from '../fixtures/start-with-setup.ts';
import type { CandidateCommands, CandidateSetup } from './commands.ts';

const MAIN = new URL('main.ts', import.meta.url);

/** A process that may lead. */
export type CandidateProcess = CallableProcess<CandidateCommands>;

export async function startCandidate(setup: CandidateSetup): Promise<CandidateProcess> {
  return await startWithSetup<CandidateCommands>(MAIN, setup);
}
