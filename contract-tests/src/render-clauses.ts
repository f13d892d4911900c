/** Renders which proofs each clause of docs/spec.md has. It reads what the proofs say of themselves, so it needs no reports. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { conformanceCases } from '@locks/core/conformance';
import { mutants } from './mutants/index.ts';

const root = join(import.meta.dirname, '../..');

/** Tests of a clause that name none: under faults on real servers, where the lab judges histories too, and of one package alone. */
const OTHER_TESTS: Readonly<Record<string, readonly string[]>> = {
  '§1.8': ['packages/core/test/lifetime/lease-monitor', 'packages/core/test/backend/time-limit'],
  '§2.2': [
    'contract-tests/etcd-faults/etcd-server',
    'contract-tests/redis-faults/redis-network',
    'contract-tests/postgres-faults/advisory-network',
  ],
  '§4.7': ['packages/quorum/test/quorum-heals', 'contract-tests/redis-faults/redis-quorum'],
  '§6.1': ['contract-tests/src/lab/run-lab'],
  '§7.2': ['contract-tests/redis-faults/redis-scenarios', 'contract-tests/postgres-faults/advisory-network'],
  '§7.3': ['contract-tests/redis-faults/redis-idle-gap', 'contract-tests/zookeeper-faults/zookeeper-network'],
  '§7.7': ['contract-tests/redis-faults/redis-scenarios', 'contract-tests/redis-faults/redis-modes'],
  '§7.10': ['packages/once/test/newest-wins', 'contract-tests/test/once'],
  '§8.1': ['contract-tests/redis-faults/redis-modes', 'contract-tests/zookeeper-faults/zookeeper-session'],
  '§11.1': ['contract-tests/src/lab/run-lab', 'contract-tests/redis-faults/redis-cluster'],
  '§12.1': ['contract-tests/zookeeper-faults/zookeeper-session'],
  '§13.1': ['contract-tests/redis-faults/redis-refusals'],
  '§13.2': [
    'contract-tests/mysql-faults/mysql-collisions',
    'contract-tests/postgres-faults/lease-connections',
  ],
  '§15.3': ['contract-tests/redis-faults/redis-modes'],
  '§18.1': ['packages/cohort/test/cohort-backend'],
  '§18.7': ['packages/cohort/test/cohort-backend'],
};

export function renderClauses(): string {
  const clauses = clausesIn('docs/spec.md', /^(\d+\.\d+) /gm);
  const simulated = clausesIn('simulation/src/**/*.ts', /'§(\d+\.\d+)'/g);
  const rows = [...clauses].map((clause) => {
    const cases: string[] = conformanceCases.filter((one) => one.clause === clause).map(({ id }) => id);
    const killed = mutants.filter(({ expected }) => expected.some((id) => cases.includes(id)));
    return [
      clause,
      cases.map(code).join(', '),
      killed.map(({ name }) => name).join(', '),
      simulated.has(clause) ? '✓' : '',
      (OTHER_TESTS[clause] ?? []).map(linked).join(', '),
    ];
  });
  return [
    '# Which proofs each clause has',
    '',
    'The clauses are those of [the specification](../spec.md). A case of the [conformance suite](../guides/write-a-backend.md) runs on every backend; each mutant is a',
    'broken backend or a broken core that such a case finds, in clauses of safety and liveness. The [simulation](../simulation.md) checks what is marked.',
    '',
    '| clause | cases of the suite | mutants that they find | simulation | other tests |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n');
}

function clausesIn(glob: string, pattern: RegExp): ReadonlySet<string> {
  const texts = globSync(glob, { cwd: root }).map((file) => readFileSync(join(root, file), 'utf8'));
  return new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, clause]) => `§${clause}`)));
}

function linked(name: string): string {
  const file = ['.test.ts', '.ts'].map((ending) => name + ending).find((one) => existsSync(join(root, one)));
  if (file === undefined) throw new Error(`there is no ${name}`);
  return `[${name.split('/').at(-1)}](../../${file})`;
}

function code(text: string): string {
  return `\`${text}\``;
}
