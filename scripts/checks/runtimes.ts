import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerKind } from '../../examples/src/demo/servers.ts';
import { runCommand } from './command.ts';

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
  const missing = [bun, deno].filter((file) => !existsSync(file));
  if (missing.length > 0)
    throw new Error(`not in scripts/applications/manifests/tools.json: ${missing.join(', ')}`);
  const versionOf = async (file: string) =>
    (await runCommand(file, ['--version'])).stdout.split('\n')[0]?.trim();
  return [
    { name: `Bun ${await versionOf(bun)}`, command: [bun], copies: twoCopies },
    {
      name: `${await versionOf(deno)}`,
      command: [deno, 'run', '--allow-all', '--node-modules-dir=manual'],
      copies: oneCopy,
    },
  ];
}

/** The user's servers where variables name them, else private ones for as long as `work` takes. */
export async function withServers<T>(
  kinds: readonly ServerKind[],
  work: (env: NodeJS.ProcessEnv) => Promise<T>,
): Promise<T> {
  // Imported here, after the build: the module reads `dist/`.
  const { serverOf } = await import('../../examples/src/demo/servers.ts');
  const started = await Promise.all(
    kinds.map(async (kind) => ({ variable: `${kind.toUpperCase()}_URL`, server: await serverOf(kind) })),
  );
  try {
    return await work(Object.fromEntries(started.map(({ variable, server }) => [variable, server.at])));
  } finally {
    await Promise.all(started.map(({ server }) => server.stop()));
  }
}

/** `undefined` when the program printed exactly this object as JSON, or what the pattern says. */
export async function problemOfOutput(
  executable: string,
  args: readonly string[],
  cwd: string,
  expected: object | RegExp,
  env: NodeJS.ProcessEnv = {},
): Promise<string | undefined> {
  const options = { cwd, env: { ...process.env, ...env }, limitMs: 60_000 };
  const { ok, output, stdout } = await runCommand(executable, args, options);
  if (!ok) return output.trim() === '' ? 'failed without output' : output;
  const said = stdout.trim();
  const isRight = expected instanceof RegExp ? expected.test(said) : said === JSON.stringify(expected);
  return isRight ? undefined : `printed ${said}`;
}
