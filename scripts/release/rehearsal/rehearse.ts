import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { must, runCommand } from '../../checks/command.ts';
import { problemOfContents } from '../../checks/packed-contents.ts';
import { withServers } from '../../checks/step-servers.ts';
import { resultOf, type StepResult } from '../../checks/step.ts';
import { publishedPackages } from '../../checks/workspace.ts';
import type { ServerName } from '../../launcher/servers.mjs';
import { billOfMaterials } from './bill-of-materials.ts';
import { type FreshProject, freshProject, managers } from './fresh-projects.ts';
import { runPrograms, startersOf } from './programs.ts';
import { keptApart } from './other-layout.ts';
import { type Registry, startRegistry } from './registry.ts';
import {
  checkPacked,
  copyOfCommit,
  copyOfSources,
  publishTo,
  raiseVersions,
  versionOf,
} from './release-copy.ts';
import { besideEachOther, upgradeStores } from './upgrade.ts';

export interface RehearsalOptions {
  /** With `dist/` of the working tree, npm alone, the running Node, and the upgrade on SQLite and Redis. */
  readonly quick: boolean;
  /** A commit or tag to upgrade from; without it the last release that has a tag, else the sources as they are. */
  readonly before?: string | undefined;
  /** Where the software bill of materials is written to. */
  readonly sbom?: string | undefined;
  readonly missing: ReadonlySet<ServerName>;
}

/** A whole release to a registry of this machine, and what its users do next. Changes nothing but a temporary folder. */
export async function rehearse(options: RehearsalOptions): Promise<StepResult> {
  const { quick, missing, sbom } = options;
  const folder = mkdtempSync(join(tmpdir(), 'rehearsal-'));
  const steps = new RehearsalSteps(!quick);
  const treeBefore = await workingTree();
  let registry: Registry | undefined;
  try {
    const started = await steps.run('registry', () => startRegistry(join(folder, 'registry')));
    registry = started;
    const { before, version } = await release(steps, registry, folder, options);
    const projects = await install(steps, registry, version, folder, quick);
    await steps.tryTo('contents', () => contents(started, version));
    const withNpm = projects.find(({ manager }) => manager === 'npm');
    if (withNpm) {
      const file = sbom ?? join(folder, 'sbom.json');
      await steps.tryTo('sbom and licences', () => billOfMaterials(withNpm.folder, file));
      await run(steps, projects, options);
      await upgrade(steps, started, withNpm, { before, version }, folder, options);
    }
  } catch (error) {
    // What follows a failed step cannot run.
    if (!steps.hasFailed) throw error;
  } finally {
    await registry?.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
  await steps.tryTo('nothing changed', async () => {
    if ((await workingTree()) !== treeBefore) throw new Error('the working tree is not as it was before');
  });
  return steps.result(missing);
}

/** What became of each step, with its time and what it saw. */
class RehearsalSteps {
  readonly #checks: { readonly name: string; readonly problem?: string }[] = [];
  readonly #notes: string[] = [];
  readonly #tells: boolean;

  constructor(tells: boolean) {
    this.#tells = tells;
  }

  get hasFailed(): boolean {
    return this.#checks.some(({ problem }) => problem !== undefined);
  }

  /** Rejects when the step fails, which is noted: what needs its result cannot run. A text is what the step saw. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      const result = await work();
      const seconds = ((performance.now() - start) / 1_000).toFixed(1).padStart(6);
      const line = `${name.padEnd(30)} ${seconds} s  ${typeof result === 'string' ? result : ''}`;
      this.#checks.push({ name });
      this.#notes.push(line);
      // All of a rehearsal takes minutes.
      if (this.#tells) console.log(`        ${line}`);
      return result;
    } catch (error) {
      this.#checks.push({ name, problem: error instanceof Error ? error.message : String(error) });
      throw error;
    }
  }

  /** As `run`; what comes after does not need this step. */
  tryTo<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    return this.run(name, work).catch(() => undefined);
  }

  result(missing: ReadonlySet<ServerName>): StepResult {
    const absent = missing.size > 0 ? [`absent: what needs ${[...missing].join(', ')}`] : [];
    return resultOf(this.#checks, [...this.#notes, ...absent]);
  }
}

interface Versions {
  readonly before: string;
  readonly version: string;
}

/** Publishes the version before and the version that comes. */
async function release(
  steps: RehearsalSteps,
  registry: Registry,
  folder: string,
  { quick, before: earlier }: RehearsalOptions,
): Promise<Versions> {
  const commit = earlier ?? (quick ? undefined : await lastRelease());
  const copy = await steps.run('copy', () => copyOfSources(join(folder, 'sources'), quick));
  // Where there is no earlier release the upgrade shows the mechanism alone.
  const before = await steps.run('version before', async () => {
    const old = commit === undefined ? copy : await copyOfCommit(join(folder, 'before'), commit);
    await publishTo(registry, old);
    return versionOf(old);
  });
  const version = await steps.run('version', async () => {
    await raiseVersions(copy);
    if (versionOf(copy) === before) throw new Error(`the version before is ${before} as well`);
    return versionOf(copy);
  });
  await steps.run('build, pack, publish', async () => {
    await publishTo(registry, copy);
    checkPacked(copy);
  });
  return { before, version };
}

/** Fresh projects, one for each package manager. */
async function install(
  steps: RehearsalSteps,
  registry: Registry,
  version: string,
  folder: string,
  quick: boolean,
): Promise<readonly FreshProject[]> {
  const projects = [];
  for (const manager of quick ? (['npm'] as const) : managers)
    projects.push(
      await steps.tryTo(`install with ${manager}`, () =>
        freshProject(manager, registry, version, join(folder, 'projects', manager)),
      ),
    );
  return projects.filter((project) => project !== undefined);
}

/** Every published tarball, and what the registry answers to a package manager. */
async function contents(registry: Registry, version: string): Promise<void> {
  const problems: string[] = [];
  for (const one of publishedPackages) {
    const { name } = one.manifest;
    const problem = await problemOfContents(registry.tarball(name, version), one, true);
    if (problem !== undefined) problems.push(`${name}: ${problem}`);
    const answer = await fetch(`${registry.url}${name.replace('/', '%2f')}`);
    const { 'dist-tags': tags } = (await answer.json()) as { 'dist-tags'?: { latest?: string } };
    if (tags?.latest !== version) problems.push(`${name}: latest is ${tags?.latest}`);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

/** The programs of every project on the Node that runs this, and those of npm's project on all other runtimes. */
async function run(
  steps: RehearsalSteps,
  projects: readonly FreshProject[],
  { quick, missing }: RehearsalOptions,
): Promise<void> {
  const starters = (await steps.tryTo('runtimes', () => startersOf(quick))) ?? [];
  await withServers(missing.has('redis') ? [] : ['redis'], async (env) => {
    for (const project of projects)
      for (const starter of project.manager === 'npm' ? starters : starters.slice(0, 1))
        await steps.tryTo(`run: ${project.manager}, ${starter.name}`, () =>
          runPrograms(project, starter, env),
        );
  });
}

/** The version before and the new one on one store each, with leases held by either. */
async function upgrade(
  steps: RehearsalSteps,
  registry: Registry,
  { folder: newProject }: FreshProject,
  { before, version }: Versions,
  folder: string,
  { quick, missing }: RehearsalOptions,
): Promise<void> {
  const oldProject = await steps.run('install the version before', () =>
    freshProject('npm', registry, before, join(folder, 'projects/before')),
  );
  const versions = [
    { folder: oldProject.folder, version: before },
    { folder: newProject, version },
  ] as const;
  const work = join(folder, 'upgrade');
  mkdirSync(work);
  for (const name of Object.keys(upgradeStores) as (keyof typeof upgradeStores)[]) {
    const server = upgradeStores[name];
    if (quick && name !== 'sqlite' && name !== 'ioredis') continue;
    if (server !== undefined && missing.has(server)) continue;
    await steps.tryTo(`upgrade on ${name}`, () =>
      withServers(server === undefined ? [] : [server], async (urls) => {
        const env = { ...urls, LOCKS_SQLITE_FILE: join(work, 'locks.sqlite') };
        await besideEachOther(name, versions, env, work);
        await keptApart(name, newProject, env);
      }),
    );
  }
}

/** The newest tag of a release; `undefined` before the first. */
async function lastRelease(): Promise<string | undefined> {
  const tags = ['tag', '--list', '--sort=-version:refname', '@locks/core@*', '--merged=HEAD'];
  const { ok, stdout } = await runCommand('git', tags);
  return ok ? stdout.trim().split('\n')[0] || undefined : undefined;
}

function workingTree(): Promise<string> {
  return must('git', ['status', '--porcelain', '--untracked-files=no']);
}
