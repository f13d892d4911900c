import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { problemOf } from '../command.ts';
import { generators } from '../generators.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { workspacePackages } from '../workspace.ts';

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
      const problem = await problemOf('oxlint', ['--type-aware', '--deny-warnings']);
      return resultOf([{ name: 'oxlint', problem }]);
    },
  },
  {
    name: 'types',
    about: 'tsc over every package with its tests, and over scripts/',
    kind: 'static',
    async run() {
      const folders = [...workspacePackages.map((one) => one.path), 'scripts'];
      const checks = [];
      for (const name of folders)
        checks.push({ name, problem: await problemOf('tsc', ['-p', join(root, name, 'tsconfig.json')]) });
      return resultOf(checks);
    },
  },
  {
    name: 'generated',
    about: 'the embedded scripts agree with their .lua and .sql files',
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
