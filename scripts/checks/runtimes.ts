import { join } from 'node:path';
import { must } from './command.ts';

/** What two-copies/main.js prints. */
const sharedByCopies = {
  holdCount: 3,
  detachedCount: 'LOCK_TIMEOUT',
  branches: ['LOCK_REENTRANT', 'done'],
  errorIsKnown: true,
  told: ['a', 'b'],
};
export const oneCopy = { copies: 1, ...sharedByCopies };
export const twoCopies = { copies: 2, ...sharedByCopies };

/** What runtimes/main.js prints. */
export const asUnderNode = {
  refused: true,
  isKept: true,
  timeout: 'LOCK_TIMEOUT',
  isHandedOn: true,
  counter: 20,
  holdCount: 2,
};

export interface Runtime {
  readonly name: string;
  readonly command: readonly string[];
  /** Deno resolves as Node does; Bun does not know the condition `module-sync`. */
  readonly copies: object;
}

/** Bun and Deno of the manifest `tools`, which is installed in the folder. */
export async function runtimesIn(folder: string): Promise<readonly Runtime[]> {
  const modules = join(folder, 'node_modules');
  const cpu = { x64: 'x64', arm64: 'aarch64' }[process.arch as string] ?? process.arch;
  const bun = join(modules, `@oven/bun-${process.platform}-${cpu}/bin/bun`);
  const libc = process.platform === 'linux' ? '-glibc' : '';
  const deno = join(modules, `@deno/${process.platform}-${process.arch}${libc}/deno`);
  const versionOf = async (file: string) => (await must(file, ['--version'])).split('\n', 1)[0];
  const ofDeno = [deno, 'run', '--allow-all', '--node-modules-dir=manual'];
  return [
    { name: `Bun ${await versionOf(bun)}`, command: [bun], copies: twoCopies },
    { name: `${await versionOf(deno)}`, command: ofDeno, copies: oneCopy },
  ];
}
