import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fixtureNames, harnessNames, topologyNames } from '../../../contract-tests/src/harness-names.ts';
import { root } from '../../launcher/root.mjs';
import type { ServerName } from '../../launcher/servers.mjs';
import { serversOf, urlVariables } from '../../launcher/servers.mjs';
import { problemOf } from '../command.ts';
import { matrixGenerator } from '../generators.ts';
import type { Step, StepContext, StepResult } from '../step.ts';
import { resultOf } from '../step.ts';
import { runVitest } from '../vitest-run.ts';
import type { WorkspacePackage } from '../workspace.ts';
import { hasTests, workspacePackages } from '../workspace.ts';

const contractTests = join(root, 'contract-tests');

/** These files keep both cores busy, which would delay cases of the suite beside them. */
const BESIDE_THE_SUITE = [
  'guide',
  'leader',
  'memory-timing',
  'once',
  'options',
  'suite-processes',
  'suite-run',
  'web-locks',
  'web-locks-order',
  'lab/lab-logic',
  'lab/lab-run',
];

/** Test files that cost much and show little of what a change breaks: `npm run test:all` runs them. */
const LONG_FILES: Readonly<Record<string, readonly string[]>> = {
  cli: [
    'bench',
    'board',
    'every-store',
    'redis-deployments',
    'doctor/etcd',
    'doctor/mysql',
    'doctor/postgres',
    'doctor/zookeeper',
  ],
  etcd: ['many-waiters'],
  mysql: ['connections-in-use', 'long-queue'],
  postgres: ['advisory-load', 'lease-load'],
  'redis-node': ['topologies'],
  simulation: ['simulation', 'planted-errors', 'mysql/differential'],
  site: ['reference'],
};

const plainSuites = harnessNames
  .filter((name) => !fixtureNames.includes(name) && !topologyNames.includes(name))
  .map((name) => `test/.conformance/${name}.test.ts`);

/** Everything that vitest runs, and what is rendered from its reports. */
export const testSteps: readonly Step[] = [
  {
    name: 'launcher',
    about: 'the commands themselves: exit codes, Ctrl-C, nothing left behind',
    kind: 'timed',
    run: ({ testArguments }) => runVitest(join(root, 'scripts'), testArguments),
  },
  ...allServers()
    .filter((server) => existsSync(join(contractTests, `${server}-faults`)))
    .map(faultsStep),
  ...workspacePackages
    .filter((one) => one.shortName !== 'contract-tests' && one.shortName !== 'examples')
    .filter((one) => hasTests(one) || one.path.startsWith('packages/'))
    .flatMap(unitSteps),
  {
    name: 'contract:conformance',
    about: 'the conformance suite on every backend, at its plain topology',
    kind: 'alone',
    uses: allServers(),
    run: (context) => runWithoutMissing(contractTests, context, plainSuites),
  },
  {
    name: 'contract:topologies',
    about: 'the conformance suite on every other topology',
    kind: 'alone',
    uses: allServers(),
    run: (context) =>
      runWithoutMissing(contractTests, context, [
        '--dir=test',
        ...['mutants/*', ...BESIDE_THE_SUITE].map((name) => `--exclude=**/${name}.test.ts`),
        ...plainSuites.map((file) => `--exclude=**/${file.replace('test/', '')}`),
      ]),
  },
  {
    name: 'contract:others',
    about:
      'the suite itself, the guide, options of every function, Web Locks, elections and jobs of several processes',
    kind: 'alone',
    uses: allServers(),
    run: (context) =>
      runWithoutMissing(
        contractTests,
        context,
        BESIDE_THE_SUITE.map((name) => `test/${name}.test.ts`),
      ),
  },
  {
    name: 'contract:redis-versions',
    about:
      'a server of Redis that is upgraded, and one that is old again, under leases, waiters and releases',
    kind: 'timed',
    needs: ['redis'],
    async run({ testArguments }) {
      for (const version of ['redis-7.0', 'redis-8.6', 'valkey-9']) {
        const problem = await problemOf('node', [join(root, 'test-servers/fetch-version.mjs'), version]);
        if (problem !== undefined) return { passed: 0, failed: 0, output: problem, notRun: true };
      }
      return runVitest(contractTests, ['--dir=redis-versions', ...testArguments]);
    },
  },
  ...['safety', 'others'].map(
    (which): Step => ({
      name: `contract:mutants:${which}`,
      about: `the conformance suite catches backends that are broken: ${which === 'safety' ? 'in what safety hangs on' : 'in all other ways'}`,
      kind: 'alone',
      run: ({ testArguments }) =>
        runVitest(contractTests, [`test/mutants/${which}.test.ts`, ...testArguments]),
    }),
  ),
  {
    name: 'contract:load',
    about:
      'thousands of waiters, releases, slots and names of one process, which cost its other locks and its memory nothing',
    kind: 'alone',
    needs: ['redis', 'postgres', 'mysql', 'zookeeper', 'etcd'],
    run: ({ testArguments }) =>
      runVitest(contractTests, ['--dir=load', '--no-file-parallelism', ...testArguments]),
  },
  {
    name: 'matrix',
    about: 'docs/compatibility.md and its page of cases agree with the reports of the conformance suite',
    kind: 'alone',
    async run() {
      const { name, file } = matrixGenerator;
      const problem = existsSync(file)
        ? await problemOf('node', [file, '--check'])
        : `${file} does not exist`;
      return resultOf([{ name, problem }]);
    },
  },
  {
    name: 'demo',
    about: 'processes sell one stock, without and with a lock',
    kind: 'timed',
    async run() {
      const problem = await problemOf('node', [join(root, 'examples/src/demo/main.ts')]);
      return resultOf([{ name: 'npm run demo', problem }]);
    },
  },
  {
    name: 'examples',
    about: 'every example runs and does what it says',
    kind: 'timed',
    uses: allServers(),
    run: (context) => runWithoutMissing(join(root, 'examples'), context),
  },
];

/** The two backends that show most of what a change of core or of the suite breaks. */
export const quickConformanceStep: Step = {
  name: 'contract:quick',
  about: 'the conformance suite on memory and redis-ioredis',
  kind: 'timed',
  needs: ['redis'],
  onlyWhenNamed: true,
  run: ({ testArguments }) =>
    runVitest(contractTests, [
      ...['memory', 'redis-ioredis'].map((name) => `test/.conformance/${name}.test.ts`),
      ...testArguments,
    ]),
};

function faultsStep(server: ServerName): Step {
  return {
    name: `contract:faults-${server}`,
    about: `what users see when ${server} fails, in each way that is documented`,
    kind: 'timed',
    needs: [server],
    run: ({ testArguments }) =>
      runVitest(contractTests, [`--dir=${server}-faults`, '--no-file-parallelism', ...testArguments]),
  };
}

/** The tests of a package, and apart from them those of its files that take long. */
function unitSteps(one: WorkspacePackage): Step[] {
  const needs = one.shortName === 'test-servers' ? allServers() : serversOf(one.shortName);
  const long = LONG_FILES[one.shortName] ?? [];
  const step = (name: string, about: string, selection: readonly string[]): Step => ({
    name,
    about,
    kind: 'timed',
    needs,
    run: ({ testArguments }) => runVitest(one.folder, [...selection, ...testArguments]),
  });
  const name = `unit:${one.shortName}`;
  const others = long.map((file) => `--exclude=**/${file}.test.ts`);
  const paths = long.map((file) => `${file}.test.ts`);
  return [
    step(name, `the tests of ${one.path}`, others),
    ...(long.length > 0 ? [step(`${name}:long`, `those that take long: ${long.join(', ')}`, paths)] : []),
  ];
}

// Files named after a missing server cannot run; the step "servers" has failed, or the user allows it to be missing.
async function runWithoutMissing(
  folder: string,
  { missing, testArguments }: StepContext,
  selection: readonly string[] = [],
): Promise<StepResult> {
  const excluded = [...missing].map((name) => `--exclude=**/*${name}*`);
  const env = { LOCKS_MISSING_SERVERS: [...missing].join(',') };
  const result = await runVitest(folder, [...selection, ...excluded, ...testArguments], env);
  return missing.size === 0
    ? result
    : { ...result, notes: [`without the files of ${[...missing].join(', ')}`] };
}

function allServers(): ServerName[] {
  return Object.keys(urlVariables) as ServerName[];
}
