/** The main module of a child process: loads a harness and does as it is told over IPC. */
import { harnessIn } from '../harness.ts';
import { RemoteClient } from './remote-client.ts';
import { setWallClock } from './wall-clock.ts';
import type { Order, Reply } from './protocol.ts';

const wallClockOffsetMs = Number(process.argv[3] ?? 0);
// Before the harness and its driver are loaded.
if (wallClockOffsetMs !== 0) setWallClock(wallClockOffsetMs);

const send = (message: Reply | 'ready'): void => {
  process.send?.(message);
};

const unhandled: string[] = [];
process.on('unhandledRejection', (error) => unhandled.push(String(error)));
process.on('uncaughtException', (error) => unhandled.push(String(error)));
process.on('disconnect', () => process.exit());

const client = await start(process.argv[2] as string).catch((error: unknown) => {
  // The listeners above would keep a process alive that can do nothing.
  process.send?.({ failed: String(error) }, () => process.exit(1));
  return new Promise<never>(() => {});
});

process.on('message', ({ order, command, args }: Order) => {
  const run = client[command] as (...given: unknown[]) => Promise<unknown>;
  run.apply(client, [...args]).then(
    (value) => send({ order, value }),
    (error: Error & { code?: string; reason?: string }) => {
      const { message, code, reason } = error;
      send({ order, error: { message, ...(code && { code }), ...(reason && { reason }) } });
    },
  );
});
send('ready');

async function start(module: string): Promise<RemoteClient> {
  const harness = harnessIn((await import(module)) as object);
  if (harness === undefined)
    throw new Error(`${module} exports no harness: export what defineHarness() gives.`);
  const client = new RemoteClient(harness, unhandled);
  await client.open();
  return client;
}
