import { join } from 'node:path';
import { installManifest } from '../../checks/application-folder.ts';
import { expectedUse } from '../../checks/steps/consumers.ts';
import { nodesOfUsers } from '../../checks/nodes.ts';
import { asUnderNode, problemOfOutput, runtimesIn, withServers } from '../../checks/runtimes.ts';
import { root } from '../../launcher/root.mjs';
import type { FreshProject } from './fresh-projects.ts';
import { readmeOutcome } from './readme-code.ts';
import type { RehearsalOptions } from './rehearsal-options.ts';
import type { StepList } from './step-list.ts';

/** A runtime with which a program of a project is started. */
interface Starter {
  readonly name: string;
  readonly command: readonly string[];
}

interface Program {
  readonly name: string;
  readonly args: readonly string[];
  readonly expected: object;
}

const uses: readonly Program[] = ['use.mjs', 'use.cjs'].map((file) => ({
  name: file,
  args: [file],
  expected: expectedUse,
}));

const readme: readonly Program[] = ['readme/esm/main.mjs', 'readme/cjs/main.cjs'].map((file) => ({
  name: file.endsWith('.mjs') ? 'README as ES modules' : 'README as CommonJS',
  args: [file],
  expected: readmeOutcome,
}));

/** The programs of every project on the Node that runs this, and those of npm's project on all other runtimes. */
export async function runOnRuntimes(
  steps: StepList,
  projects: readonly FreshProject[],
  { quick, missing }: RehearsalOptions,
): Promise<void> {
  const own: Starter = { name: `Node ${process.version}`, command: [process.execPath] };
  const others = quick ? [] : [...(await otherNodes(steps)), ...(await bunAndDeno(steps))];
  const work = async (programs: readonly Program[], env: NodeJS.ProcessEnv) => {
    for (const project of projects) {
      const starters = project.manager === 'npm' ? [own, ...others] : [own];
      for (const starter of starters) await runPrograms(steps, project, starter, programs, env);
    }
  };
  if (missing.has('redis')) {
    steps.absent('README', 'no Redis can be started here');
    await work(uses, {});
  } else {
    await withServers(['redis'], (env) => work([...uses, ...readme], env));
  }
}

async function runPrograms(
  steps: StepList,
  project: FreshProject,
  { name, command: [executable = '', ...args] }: Starter,
  programs: readonly Program[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const isNode = name.startsWith('Node');
  // Bun and Deno have their own program besides: it waits, renews and re-enters on two backends.
  const more = ['memory', 'ioredis'].map((store) => ({
    name: `runtimes/main.js ${store}`,
    args: ['runtimes/main.js', store],
    expected: asUnderNode,
  }));
  // `use` imports SQLite's package, which Bun has no module for.
  const planned = isNode
    ? programs
    : [...programs.filter((one) => readme.includes(one)), ...('REDIS_URL' in env ? more : [])];
  await steps
    .run(`run: ${project.manager}, ${name}`, async () => {
      const problems = [];
      for (const { name: program, args: rest, expected } of planned) {
        const before = isNode ? project.nodeArguments : [];
        const given = [...args, ...before, ...rest];
        const problem = await problemOfOutput(executable, given, project.folder, expected, env);
        if (problem !== undefined) problems.push(`${program}: ${problem}`);
      }
      if (problems.length > 0) throw new Error(problems.join('\n'));
      return [undefined, planned.map((one) => one.name).join(', ')];
    })
    .catch(() => undefined);
}

async function otherNodes(steps: StepList): Promise<readonly Starter[]> {
  try {
    const nodes = await nodesOfUsers();
    return nodes
      .filter(({ version }) => version !== process.version)
      .map(({ version, executable }) => ({ name: `Node ${version}`, command: [executable] }));
  } catch (error) {
    steps.absent('other Nodes', error instanceof Error ? error.message : String(error));
    return [];
  }
}

async function bunAndDeno(steps: StepList): Promise<readonly Starter[]> {
  const folder = join(root, '.tools/applications/tools');
  try {
    await installManifest('tools', folder);
    return await runtimesIn(folder);
  } catch (error) {
    steps.absent('Bun and Deno', error instanceof Error ? error.message : String(error));
    return [];
  }
}
