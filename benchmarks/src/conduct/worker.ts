import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import { taskset } from '../measure/pinning.ts';
import type { WorkerMethods } from '../worker/methods.ts';

const script = fileURLToPath(new URL('../worker/main.ts', import.meta.url));

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** No single call of a client process takes as long. */
const CALL_LIMIT_MS = 180_000;

/** A client process. It ends with this process, in whatever way that ends. */
export type Worker = CallableProcess<WorkerMethods>;

/** @param cores - as `taskset` takes them; `undefined`: wherever the system puts it */
export function startWorker(cores: string | undefined, nodeOptions: readonly string[] = []): Worker {
  const node = [process.execPath, ...nodeOptions, script];
  const [command, ...args] = cores === undefined ? node : [taskset, '-c', cores, ...node];
  const child = spawn(command as string, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return new CallableProcess(child, CALL_LIMIT_MS);
}
