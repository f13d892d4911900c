import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../checks/command.ts';
import { root } from '../../launcher/root.mjs';
import { type FreshProject, freshProject, type Manager, managers } from './fresh-projects.ts';
import { billOfMaterials } from './licences.ts';
import { newUserPath } from './new-user.ts';
import { problemsOfPublished } from './published-contents.ts';
import { writeReadmeCode } from './readme-code.ts';
import { type Registry, startRegistry } from './registry.ts';
import {
  buildCopy,
  checkPacked,
  copyOfCommit,
  copyOfSources,
  publishTo,
  raiseVersions,
  versionOf,
} from './release-copy.ts';
import { type Outcome, StepList } from './step-list.ts';
import type { RehearsalOptions } from './rehearsal-options.ts';
import { runOnRuntimes } from './runs.ts';
import { upgradeChecks } from './upgrade-checks.ts';

/** A whole release to a registry of this machine, and what its users do next. Changes nothing but a temporary folder. */
export async function rehearse(options: RehearsalOptions): Promise<readonly Outcome[]> {
  const { quick } = options;
  const folder = mkdtempSync(join(tmpdir(), 'rehearsal-'));
  const steps = new StepList(options.onStep);
  const treeBefore = await workingTree();
  let registry: Registry | undefined;
  try {
    registry = await steps.run('registry', async () => {
      const started = await startRegistry(join(folder, 'registry'));
      return [started, 'verdaccio on 127.0.0.1'];
    });
    const versions = await release(steps, registry, folder, options);
    const projects = await install(steps, registry, versions.version, folder, quick ? ['npm'] : managers);
    await steps.run('contents', async () => {
      const problems = await problemsOfPublished(registry as Registry, versions.version);
      if (problems.length > 0) throw new Error(problems.join('\n'));
      return [undefined, 'every tarball holds what etc/packed lists, and its package.json what users need'];
    });
    if (options.missing.has('redis')) steps.absent('a new user', 'no Redis server');
    else if (!quick)
      await steps.run('a new user', async () => [
        undefined,
        await newUserPath(registry as Registry, join(folder, 'new-user')),
      ]);
    const withNpm = projects.find(({ manager }) => manager === 'npm');
    if (withNpm) {
      await steps.run('sbom and licences', async () => {
        const { components, licences, problems } = await billOfMaterials(
          withNpm.folder,
          options.sbom ?? join(folder, 'sbom.json'),
        );
        if (problems.length > 0) throw new Error(problems.join('\n'));
        return [undefined, `${components} components: ${licences}`];
      });
      await runOnRuntimes(steps, projects, options);
      await upgradeChecks(steps, registry, withNpm.folder, versions, folder, options);
    }
  } catch (error) {
    // What failed is among the outcomes; what follows cannot run.
    if (!steps.hasFailed) throw error;
  } finally {
    await registry?.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
  await steps
    .run('nothing changed', async () => {
      if ((await workingTree()) !== treeBefore) throw new Error('the working tree is not as it was before');
      return [
        undefined,
        'the working tree is as before, the temporary folder is gone, the registry has ended',
      ];
    })
    .catch(() => undefined);
  return steps.outcomes;
}

interface Versions {
  readonly before: string;
  readonly version: string;
}

/** Publishes the version before and the version that comes. */
async function release(
  steps: StepList,
  registry: Registry,
  folder: string,
  { quick, before }: RehearsalOptions,
): Promise<Versions> {
  const copy = await steps.run('copy', async () => {
    const made = await copyOfSources(join(folder, 'sources'), quick);
    return [made, `the sources without git's history, ${quick ? 'with dist/' : 'packages installed'}`];
  });
  const commit = before ?? (quick ? undefined : await lastRelease());
  const old = await steps.run('version before', async () => {
    const from = commit === undefined ? copy : await copyOfCommit(join(folder, 'before'), commit);
    await buildCopy(from);
    await publishTo(registry, from);
    const what =
      commit === undefined
        ? 'the sources as they are: there is no earlier release, so the upgrade shows the mechanism alone'
        : commit;
    return [versionOf(from), `${versionOf(from)} published, from ${what}`];
  });
  const version = await steps.run('version', async () => {
    const { version: next, pending } = await raiseVersions(copy);
    if (next === old) throw new Error(`the version before is ${old} as well`);
    const why = pending > 0 ? `${pending} changesets` : 'a patch, as no changeset is pending';
    return [next, `${old} → ${next} by ${why}; every CHANGELOG has its section`];
  });
  await steps.run('build, pack, publish', async () => {
    await buildCopy(copy);
    await publishTo(registry, copy);
    checkPacked(copy);
    return [undefined, quick ? 'changeset publish, with dist/ of the working tree' : 'npm run release'];
  });
  return { before: old, version };
}

/** Fresh projects, all at once. */
async function install(
  steps: StepList,
  registry: Registry,
  version: string,
  folder: string,
  wanted: readonly Manager[],
): Promise<readonly FreshProject[]> {
  mkdirSync(join(folder, 'projects'));
  const projects = [];
  for (const manager of wanted)
    projects.push(
      await steps
        .run(`install with ${manager}`, async () => {
          const project = await freshProject(manager, registry, version, join(folder, 'projects', manager));
          writeReadmeCode(project.folder);
          return [project, `${version} in an empty folder`];
        })
        .catch(() => undefined),
    );
  return projects.filter((project) => project !== undefined);
}

/** The newest tag of a release; `undefined` before the first. */
async function lastRelease(): Promise<string | undefined> {
  const { ok, stdout } = await runCommand('git', [
    ...['tag', '--list', '--sort=-version:refname', '@locks/core@*'],
    '--merged=HEAD',
  ]);
  return ok ? stdout.trim().split('\n')[0] || undefined : undefined;
}

async function workingTree(): Promise<string> {
  return (await runCommand('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: root })).output;
}
