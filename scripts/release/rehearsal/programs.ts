import { join } from 'node:path';
import { installManifest } from '../../checks/application-folder.ts';
import { checkOf } from '../../checks/command-step.ts';
import { PRINTED } from '../../checks/first-steps.ts';
import { expectedUse } from '../../checks/steps/consumers.ts';
import { nodesOfUsers } from '../../checks/nodes.ts';
import { asUnderNode, runtimesIn } from '../../checks/runtimes.ts';
import { root } from '../../launcher/root.mjs';
import type { FreshProject } from './fresh-projects.ts';

/** A runtime with which a program of a project is started. */
interface Starter {
  readonly name: string;
  readonly command: readonly string[];
}

/** The Node that runs this, and with `quick` no other. */
export async function startersOf(quick: boolean): Promise<readonly Starter[]> {
  const own = { name: `Node ${process.version}`, command: [process.execPath] };
  if (quick) return [own];
  const nodes = (await nodesOfUsers()).filter(({ version }) => version !== process.version);
  const folder = join(root, '.tools/applications/tools');
  await installManifest('tools', folder);
  return [
    own,
    ...nodes.map(({ version, executable }) => ({ name: `Node ${version}`, command: [executable] })),
    ...(await runtimesIn(folder)),
  ];
}

/** Runs the programs of a project: those that use Redis, where its address is in the environment. */
export async function runPrograms(
  { folder, nodeArguments }: FreshProject,
  { name, command: [executable = '', ...args] }: Starter,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const isNode = name.startsWith('Node');
  const first = [['first.mjs'], PRINTED] as const;
  // `use` imports SQLite's package, which Bun has no module for. Bun and Deno wait, renew and re-enter on two backends besides.
  const programs: readonly (readonly [readonly string[], object | RegExp])[] = isNode
    ? [[['use.mjs'], expectedUse], [['use.cjs'], expectedUse], first]
    : [first, ...['memory', 'ioredis'].map((one) => [['runtimes/main.js', one], asUnderNode] as const)];
  const before = [...args, ...(isNode ? nodeArguments : [])];
  for (const [program, expected] of programs) {
    if (!('REDIS_URL' in env) && expected !== expectedUse) continue;
    const options = { cwd: folder, env, expected };
    const given = [...before, ...program];
    const { problem } = await checkOf([program.join(' '), executable, given, options]);
    if (problem !== undefined) throw new Error(`${program.join(' ')}: ${problem}`);
  }
}
