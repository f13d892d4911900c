import { problemOf } from '../command.ts';
import { generators } from '../generators.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { lintStep, typesStep } from './turbo.ts';

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
  lintStep,
  typesStep,
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
