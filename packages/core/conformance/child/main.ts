/** The main module of a child process: loads a harness, and serves the commands of the suite over IPC. */
import { harnessIn } from '../harness.ts';
import { serveCalls } from '../process/serve-calls.ts';
import { RemoteClient } from './remote-client.ts';
import { setWallClock } from './wall-clock.ts';

const wallClockOffsetMs = Number(process.argv[3] ?? 0);
// The clock is set before the harness and its driver are loaded.
if (wallClockOffsetMs !== 0) setWallClock(wallClockOffsetMs);

const unhandled: string[] = [];
process.on('unhandledRejection', (error) => unhandled.push(String(error)));
process.on('uncaughtException', (error) => unhandled.push(String(error)));
serveCalls(start(process.argv[2] as string));

async function start(module: string): Promise<RemoteClient> {
  const harness = harnessIn((await import(module)) as object);
  if (harness === undefined)
    throw new Error(`${module} exports no harness: export what defineHarness() gives.`);
  const client = new RemoteClient(harness, unhandled);
  await client.open();
  return client;
}
