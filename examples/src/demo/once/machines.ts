import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { nextMessage } from '../next-message.ts';
import { Machine, type MachineOrder, type Night, type NightReport } from './machine.ts';

const PROGRAM = fileURLToPath(new URL('./machine-process.ts', import.meta.url));

/** What the demo needs of a machine. */
export interface RunningMachine extends AsyncDisposable {
  night(night: Night): Promise<NightReport>;
}

/** Starts a machine: a process, or a task of this one where the backend lives in one process. */
export async function startMachine(order: MachineOrder): Promise<RunningMachine> {
  if (order.address.backend === 'memory') return Machine.start(order);
  const child = fork(PROGRAM, [JSON.stringify(order)]);
  await nextMessage(child);
  return new MachineProcess(child);
}

class MachineProcess implements RunningMachine {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
  }

  async night(night: Night): Promise<NightReport> {
    const report = nextMessage(this.#child);
    this.#child.send(night);
    return (await report) as NightReport;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    if (child.connected) child.send('stop');
    await gone;
  }
}
