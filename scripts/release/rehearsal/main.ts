// `npm run release:rehearsal [-- --quick] [-- --before COMMIT] [-- --sbom FILE]`: one line a step; docs/releasing.md says what each shows.
import { parseArgs } from 'node:util';
import { installServers, missingServers } from '../../checks/servers.ts';
import { rehearse } from './rehearse.ts';
import type { Outcome } from './step-list.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    before: { type: 'string' },
    sbom: { type: 'string' },
  },
});
const start = performance.now();
// Servers that cannot be started here are absent, not an error.
process.env['LOCKS_ALLOW_MISSING'] ??= 'redis,postgres,mysql,zookeeper,etcd';
const servers = await installServers(
  values.quick ? ['redis'] : ['redis', 'postgres', 'mysql', 'zookeeper', 'etcd'],
);
const outcomes = await rehearse({
  ...values,
  before: values.before,
  sbom: values.sbom,
  missing: missingServers(servers),
  onStep,
});
const count = (wanted: Outcome['outcome']) => outcomes.filter(({ outcome }) => outcome === wanted).length;
const seconds = Math.round((performance.now() - start) / 1_000);
console.log(`\n${count('ok')} ok, ${count('failed')} failed, ${count('absent')} absent, in ${seconds} s`);
process.exitCode = count('failed') > 0 ? 1 : 0;

function onStep({ name, seconds: took, outcome, note }: Outcome): void {
  console.log(`${outcome.padEnd(7)} ${name.padEnd(30)} ${took.toFixed(1).padStart(6)} s  ${note}`);
}
