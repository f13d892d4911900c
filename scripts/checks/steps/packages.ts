import { problemOf } from '../command.ts';
import { packedPackages } from '../packed.ts';
import { problemOfContents, staleLists } from '../packed-contents.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** Checks of the packages as the registry would get them. */
export const packageSteps: readonly Step[] = [
  {
    name: 'publint',
    about: 'the packed packages follow the rules of package.json',
    kind: 'static',
    async run() {
      const checks = [];
      for (const { path, tarball } of await packedPackages()) {
        checks.push({ name: path, problem: await problemOf('publint', ['run', tarball, '--strict']) });
      }
      return resultOf(checks);
    },
  },
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
  {
    name: 'attw',
    about:
      'the types of the packed packages resolve, by import and require, also where a compiler reads no exports',
    kind: 'static',
    async run() {
      const checks = [];
      for (const { path, tarball } of await packedPackages()) {
        const args = [tarball, '--no-definitely-typed', '--format', 'ascii'];
        checks.push({ name: path, problem: await problemOf('attw', args) });
      }
      return resultOf(checks);
    },
  },
  {
    name: 'knip',
    about: 'no file, export or dependency is unused',
    kind: 'static',
    async run() {
      const problem = await problemOf('knip', ['--no-progress', '--no-config-hints']);
      return resultOf([{ name: 'knip', problem }]);
    },
  },
];
