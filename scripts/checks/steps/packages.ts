import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandStep } from '../command-step.ts';
import { packedPackages } from '../packed.ts';
import { problemOfContents, staleLists } from '../packed-contents.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Checks of the packages as the registry would get them. */
export const packageSteps: readonly Step[] = [
  commandStep(
    { name: 'publint', about: 'the packed packages follow the rules of package.json', kind: 'static' },
    async () =>
      (await packedPackages()).map(({ path, tarball }) => [path, 'publint', ['run', tarball, '--strict']]),
  ),
  commandStep(
    {
      name: 'attw',
      about:
        'the types of the packed packages resolve, by import and require, also where a compiler reads no exports',
      kind: 'static',
    },
    async () =>
      (await packedPackages()).map(({ path, tarball }) => [
        path,
        'attw',
        [tarball, '--no-definitely-typed', '--format', 'ascii'],
      ]),
  ),
  commandStep(
    {
      name: 'api',
      about: 'etc/api/*.api.md agree with the packages; `npm run update` renews them',
      kind: 'static',
    },
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'api-'));
      const difference = ['diff', '--no-index', '--no-color', 'etc/api', folder];
      return [
        ['the interfaces', 'node', ['scripts/checks/api-reports.ts', folder]],
        ['etc/api, and if a difference is meant: npm run update', 'git', difference],
      ];
    },
  ),
  commandStep(
    {
      name: 'size',
      about: 'the main entries stay within their budgets (.size-limit.mjs), minified and gzipped',
      kind: 'static',
      shows: /^ +(Size|@locks|core|redis)/,
    },
    () => [['size-limit', 'size-limit', []]],
  ),
  {
    name: 'packed',
    about:
      'what is packed: the files of etc/packed, its size and package.json, no link of a README that leads nowhere',
    kind: 'static',
    async run() {
      const checks: { name: string; problem: string | undefined }[] = staleLists();
      for (const one of await packedPackages())
        checks.push({ name: one.path, problem: await problemOfContents(one.tarball, one, false) });
      return resultOf(checks);
    },
  },
];
