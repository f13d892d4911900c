import type { CallableProcess } from '@locks/core/conformance/process';
import { startWithSetup } from '../fixtures/start-with-setup.ts';
import type { ClientSetup, WebLocksCommands } from './commands.ts';

const MAIN = new URL('main.ts', import.meta.url);

/** A process with a Web Locks client of its own. */
export type ClientProcess = CallableProcess<WebLocksCommands>;

export async function startClient(setup: ClientSetup): Promise<ClientProcess> {
  return await startWithSetup<WebLocksCommands>(MAIN, setup);
}
