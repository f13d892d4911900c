import { join } from 'node:path';
import { turboOptions } from '../../launcher/build.mjs';
import { root } from '../../launcher/root.mjs';
import { runCommand } from '../command.ts';
import { commandStep } from '../command-step.ts';
import { generators } from '../generators.ts';
import type { Step } from '../step.ts';

/** One program has the packages that share their options: what they import, and the types of Node, are read once. */
const PROJECTS = [
  'tsconfig.packages.json',
  'packages/core/tsconfig.legacy-decorators.json',
  'packages/nestjs',
  'benchmarks',
  'examples',
  'scripts',
  'simulation',
  'site',
];

/** Runs before all other steps: they read `dist/`. */
export const buildStep: Step = commandStep(
  { name: 'build', about: 'all packages are built', kind: 'alone' },
  () => [
    ['turbo run build', 'turbo', ['run', 'build', ...turboOptions, '--continue=dependencies-successful']],
  ],
);

/** Checks that read the source only. */
export const sourceSteps: readonly Step[] = [
  commandStep({ name: 'format', about: 'biome: the files are formatted', kind: 'static' }, () => [
    ['biome format', 'biome', ['format', '--reporter=summary', '.']],
  ]),
  commandStep({ name: 'lint', about: 'oxlint, with the type-aware promise rules', kind: 'static' }, () => [
    ['oxlint', 'oxlint', ['--type-aware', '--deny-warnings']],
  ]),
  commandStep(
    { name: 'types', about: 'tsc over every package with its tests, and over scripts/', kind: 'static' },
    () =>
      PROJECTS.map((name) => {
        // What has not changed since is not checked again.
        const known = join(root, '.tools/types', `${name.replaceAll('/', '-')}.tsbuildinfo`);
        return [name, 'tsc', ['-p', name, '--singleThreaded', '--incremental', '--tsBuildInfoFile', known]];
      }),
  ),
  commandStep(
    {
      name: 'generated',
      about:
        'the embedded scripts agree with their .lua and .sql files, the dashboard and the alerts with the metrics, the pictures and their tables with the figures of the benchmarks, the documents with the examples, sentences and tables of stores that they include, and the track record with its entries',
      kind: 'static',
    },
    () => generators.map(({ name, file }) => [name, 'node', [file, '--check']]),
  ),
  commandStep({ name: 'knip', about: 'no file, export or dependency is unused', kind: 'static' }, () => [
    ['knip', 'knip', ['--no-progress', '--no-config-hints']],
  ]),
  commandStep(
    {
      name: 'changesets',
      about: 'a change of published packages comes with a changeset, which says to users what is new',
      kind: 'static',
    },
    async () => {
      // Without `--since` changeset compares with the local main branch, which a checkout of CI has not.
      const { ok } = await runCommand('git', ['rev-parse', '--verify', 'origin/main']);
      return [['changeset status', 'changeset', ['status', ...(ok ? ['--since=origin/main'] : [])]]];
    },
  ),
];
