import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import type { CandidateCommands, CandidateSetup } from './commands.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** A process that may lead. */
export type CandidateProcess = CallableProcess<CandidateCommands>;

export async function startCandidate(setup: CandidateSetup): Promise<CandidateProcess> {
  const child = fork(MAIN, [JSON.stringify(setup)], {
    env: { ...process.env, ...setup.env },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const candidate: CandidateProcess = new CallableProcess(child);
  await candidate.ready();
  return candidate;
}
