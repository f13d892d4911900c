/** A machine in a process of its own: connects, reports that it is ready, and reports on every night that it is told of. */
import { Machine, type MachineOrder, type Night } from './machine.ts';

// Without the parent nobody reads the reports.
process.on('disconnect', () => process.exit());

const machine = await Machine.start(JSON.parse(process.argv[2] as string) as MachineOrder);
process.on('message', (message: Night | 'stop') => void (message === 'stop' ? stop() : report(message)));
process.send?.('ready');

async function report(night: Night): Promise<void> {
  process.send?.(await machine.night(night));
}

async function stop(): Promise<void> {
  await machine[Symbol.asyncDispose]();
  process.removeAllListeners('disconnect');
  if (process.connected) process.disconnect();
}
