import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import type { ClientSetup, WebLocksCommands } from './commands.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** A process with a Web Locks client of its own. */
export type ClientProcess = CallableProcess<WebLocksCommands>;

export async function startClient(setup: ClientSetup): Promise<ClientProcess> {
  const child = fork(MAIN, [JSON.stringify(setup)], {
    env: { ...process.env, ...setup.env },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const client: ClientProcess = new CallableProcess(child);
  await client.ready();
  return client;
}
