import { constants } from 'node:fs';
import type { DatabaseSyncOptions } from 'node:sqlite';
import type { ProcessMachine } from './process-machine.ts';
import type { SimulatedProcess } from './simulated-process.ts';

const CALLS = [
  ...['accessSync', 'realpathSync', 'statSync', 'readFileSync', 'readlinkSync', 'openSync', 'writeSync'],
  ...['closeSync', 'fchmodSync', 'fchownSync', 'rmSync', 'watch'],
];

/** `node:fs` in the processes of one piece of code. */
export function filesIn(current: () => SimulatedProcess): Readonly<Record<string, unknown>> {
  const call =
    (name: string) =>
    (...given: unknown[]): unknown => {
      const { fs } = machineOf(current());
      return Reflect.apply(Reflect.get(fs, name) as () => unknown, fs, given);
    };
  return { constants, ...Object.fromEntries(CALLS.map((name) => [name, call(name)])) };
}

/** `node:sqlite` in the processes of one piece of code. */
export function sqliteIn(current: () => SimulatedProcess): Readonly<Record<string, unknown>> {
  const open = (_path: string, options: DatabaseSyncOptions): object =>
    machineOf(current()).openDatabase(options);
  return {
    DatabaseSync: new Proxy(class {}, {
      construct: (_, given) => Reflect.apply(open, undefined, given as [string, DatabaseSyncOptions]),
    }),
  };
}

function machineOf({ name, machine }: SimulatedProcess): ProcessMachine {
  if (machine === undefined) throw new Error(`${name} has no machine with files`);
  return machine;
}
