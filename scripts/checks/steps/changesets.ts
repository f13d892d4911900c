import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { problemOf, runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { publishedPackages } from '../workspace.ts';

const baseBranches = ['origin/main', 'main'];

/** A change of a published package comes with a changeset, which says to users what is new. */
export const changesetStep: Step = {
  name: 'changesets',
  about: 'every changed published package has a changeset',
  kind: 'static',
  async run() {
    const announced = announcedPackages();
    const checks = publishedPackages
      // A package that was never released needs a changeset for its first release.
      .filter(({ manifest }) => manifest.version === '0.0.0')
      .map(({ manifest: { name } }) => ({
        name,
        problem: announced.has(name)
          ? undefined
          : 'never released, and no changeset names it: run `npm run changeset`',
      }));
    const base = await branchingPoint();
    if (base)
      checks.push({
        name: `since ${base}`,
        problem: await problemOf('changeset', ['status', `--since=${base}`]),
      });
    else checks.push({ name: 'status', problem: await problemOf('changeset', ['status']) });
    return resultOf(checks);
  },
};

/** The packages that the pending changesets name in their front matter. */
function announcedPackages(): Set<string> {
  const files = globSync('.changeset/*.md', { cwd: root }).filter((file) => !file.endsWith('README.md'));
  const frontMatters = files.map((file) => readFileSync(join(root, file), 'utf8').split('---')[1] ?? '');
  return new Set(
    frontMatters.flatMap((text) =>
      [...text.matchAll(/^['"]?(@locks\/[^'":]+)['"]?:/gm)].map((match) => match[1] ?? ''),
    ),
  );
}

/** Where this branch left the main one; `undefined` on the main branch itself and where git does not know. */
async function branchingPoint(): Promise<string | undefined> {
  const head = await runCommand('git', ['rev-parse', 'HEAD']);
  for (const branch of baseBranches) {
    const base = await runCommand('git', ['merge-base', branch, 'HEAD']);
    if (!base.ok) continue;
    return base.stdout === head.stdout ? undefined : base.stdout.trim();
  }
  return undefined;
}
