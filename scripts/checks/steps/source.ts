import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { problemOf } from '../command.ts';
import { generators } from '../generators.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

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

/** Checks that read the source only. */
export const sourceSteps: readonly Step[] = [
  {
    name: 'format',
    about: 'biome: the files are formatted',
    kind: 'static',
    async run() {
      return resultOf([
        { name: 'biome format', problem: await problemOf('biome', ['format', '--reporter=summary', '.']) },
      ]);
    },
  },
  {
    name: 'lint',
    about: 'oxlint, with the type-aware promise rules',
    kind: 'static',
    async run() {
      return resultOf([
        { name: 'oxlint', problem: await problemOf('oxlint', ['--type-aware', '--deny-warnings']) },
      ]);
    },
  },
  {
    name: 'types',
    about: 'tsc over every package with its tests, and over scripts/',
    kind: 'static',
    async run() {
      const checks = [];
      for (const name of PROJECTS) {
        // What has not changed since is not checked again.
        const known = join(root, '.tools/types', `${name.replaceAll('/', '-')}.tsbuildinfo`);
        const args = ['-p', name, '--singleThreaded', '--incremental', '--tsBuildInfoFile', known];
        checks.push({ name, problem: await problemOf('tsc', args) });
      }
      return resultOf(checks);
    },
  },
  {
    name: 'generated',
    about:
      'the embedded scripts agree with their .lua and .sql files, the dashboard and the alerts with the metrics, the pictures and their tables with the figures of the benchmarks, the documents with the examples that they show',
    kind: 'static',
    async run() {
      const checks = [];
      for (const { name, file } of generators) {
        checks.push({ name, problem: await problemOf('node', [file, '--check']) });
      }
      return resultOf(checks);
    },
  },
];
