import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import {
  type BenchmarkResults,
  type FamilyMember,
  missingBackends,
  missingStores,
  triedRuntimes,
  triedStores,
  wrongFamilies,
  wrongDemoBackends,
  wrongFigures,
  wrongLabRuns,
  wrongVersions,
} from '../claims.ts';
import { benchmarkTables } from '../documents/benchmark-figures.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** The README says no more than support, lab and benchmark show. */
export const claimsStep: Step = {
  name: 'claims',
  about:
    'what the README says of stores, tests and figures is what docs/support.md, the results of the lab and those of the benchmark have, and the families of packages are those of their dependencies',
  kind: 'static',
  async run() {
    // Imported here: it needs the built packages, which a fresh clone has only once its first steps ran.
    const { backendNames } = await import('../../../examples/src/demo/backends.ts');
    const readme = read('README.md');
    const support = read('docs/support.md');
    const stores = triedStores(support);
    const labBackends = globSync('contract-tests/lab-results/*.json', { cwd: root }).map((file) =>
      basename(file, '.json'),
    );
    const results = JSON.parse(read('benchmarks/results/redis.json')) as BenchmarkResults;
    const [introduction = ''] = /^# locks$[^]*?(?=^## )/m.exec(readme) ?? [];
    return resultOf([
      check('README.md: its first paragraph', missingStores(introduction, stores)),
      check('README.md: Tested on', wrongVersions(readme, triedRuntimes(support))),
      check('README.md: the lab', wrongLabRuns(readme, stores, labBackends)),
      check('README.md: the demo', wrongDemoBackends(readme, backendNames)),
      check('README.md: figures', wrongFigures(readme, results, benchmarkTables('redis'))),
      check('CONTRIBUTING.md: families', wrongFamilies(read('CONTRIBUTING.md'), familyMembers())),
      check('site/home.md', missingBackends(read('site/home.md'), stores)),
    ]);
  },
};

/** All packages but core, which the families are made of. */
function familyMembers(): FamilyMember[] {
  return globSync('packages/*/package.json', { cwd: root })
    .map((file) => {
      const { dependencies = {} } = JSON.parse(read(file)) as { dependencies?: Record<string, string> };
      return { name: basename(dirname(file)), dependencies: Object.keys(dependencies) };
    })
    .filter(({ name }) => name !== 'core');
}

function check(name: string, problems: readonly string[]): { name: string; problem: string | undefined } {
  return { name, problem: problems.length > 0 ? problems.join('\n') : undefined };
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}
