import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { problemOf, runCommand } from '../command.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';
const folder = join(root, '.tools/actionlint');
const workflows = '.github/workflows/*.yml';

/** Without Go, actionlint is reported as left out; the pins are checked all the same. */
export const workflowsStep: Step = {
  name: 'workflows',
  about: 'every action of the GitHub workflows is pinned by its commit, and actionlint finds nothing',
  kind: 'static',
  async run() {
    const pins = globSync(workflows, { cwd: root }).map((file) => ({
      name: file,
      problem: problemOfPins(readFileSync(join(root, file), 'utf8')),
    }));
    const absent = await bringActionlint();
    if (absent !== undefined) return resultOf(pins, [`without actionlint: ${absent}`]);
    // Its own ways to find shellcheck and pyflakes would make the result depend on the machine.
    const problem = await problemOf(join(folder, 'actionlint'), ['-no-color', '-shellcheck=', '-pyflakes=']);
    return resultOf([...pins, { name: 'actionlint', problem }]);
  },
};

/** A tag may be moved to other code, a commit may not. The version stands beside it, where a reader and dependabot see it. */
export function problemOfPins(workflow: string): string | undefined {
  const uses = workflow.split('\n').filter((line) => /^\s*(- )?uses:/.test(line));
  const unpinned = uses.filter(
    (line) => !/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$/.test(line) && !/uses: \.\//.test(line),
  );
  return unpinned.length > 0
    ? `not pinned by a commit with its version behind it:\n${unpinned.join('\n')}`
    : undefined;
}

/** Builds actionlint once into .tools/; says why it cannot, where it cannot. */
async function bringActionlint(): Promise<string | undefined> {
  if (existsSync(join(folder, 'actionlint'))) return undefined;
  if (!(await runCommand('go', ['version'])).ok) return 'there is no Go here';
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-mod=mod' };
  const { ok, output } = await runCommand('go', ['install', ACTIONLINT], { env, limitMs: 180_000 });
  return ok ? undefined : `it cannot be built: ${output.trim().split('\n').at(-1)}`;
}
