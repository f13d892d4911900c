// One file, a list: a step for each folder of tests, with the servers that it starts.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fixtureNames, harnessNames, topologyNames } from '../../../contract-tests/src/harness-names.ts';
import { oldLocks } from '../../../contract-tests/src/rollover/old-locks.ts';
import { root } from '../../launcher/root.mjs';
import { canFindServer } from '../../../test-servers/src/find-server.mjs';
import type { ServerName } from '../../launcher/servers.mjs';
import { isOptional, serversOf, urlVariables } from '../../launcher/servers.mjs';
import { checkOf } from '../command-step.ts';
import { problemOf } from '../command.ts';
import { resultOf, type Step } from '../step.ts';
import { runVitest } from '../vitest-run.ts';
import type { WorkspacePackage } from '../workspace.ts';
import { hasTests, workspacePackages } from '../workspace.ts';

const allServers = Object.keys(urlVariables) as ServerName[];
/** Those that the package manager of the system brings. */
const systemServers = serversOf('all');

/** These files keep both cores busy, which would delay cases of the suite beside them. */
const BESIDE_THE_SUITE = [
  'guide',
  'leader',
  'memory-timing',
  'once',
  'options',
  'secrets',
  'suite-processes',
  'suite-run',
  'web-locks',
  'web-locks-order',
  'lab/lab-logic',
  'lab/lab-run',
  'lab/prove-others',
];

/** Test files that cost much and show little of what a change breaks: `npm run test:all` runs them. */
const LONG_FILES: Readonly<Record<string, readonly string[]>> = {
  cli: [
    'board',
    'every-store',
    'prepare',
    'redis-deployments',
    'doctor/etcd',
    'doctor/mysql',
    'doctor/postgres',
    'doctor/zookeeper',
  ],
  etcd: ['many-waiters'],
  file: ['renewal-thread'],
  memory: ['deadlock-model'],
  mysql: ['connections-in-use', 'long-queue'],
  postgres: ['advisory-load', 'lease-load'],
  'redis-glide': ['cluster'],
  'redis-ioredis': ['renewal-thread'],
  'redis-node': ['topologies'],
  simulation: ['simulation', 'planted-errors', 'traces'],
  site: ['reference'],
};

/** Test files that judge a store by how fast it answers, under faults: nothing runs beside them. */
const ALONE_FILES: Readonly<Record<string, readonly string[]>> = {
  cli: ['prove-stores'],
  prove: ['convictions'],
};

/** Servers that answer in seconds beside other tests, where the holds of their scenarios last for a few: these run alone. */
const SLOW: ReadonlySet<string> = new Set(['dynamodb', 'mongodb', 'seaweedfs']);

/** Servers that a package's tests start beside {@link serversOf} its name, and do without where Java or Python are absent. */
const ALSO_USED: Readonly<Record<string, readonly ServerName[]>> = {
  cli: allServers.filter(isOptional),
  s3: ['seaweedfs'],
  'test-servers': allServers.filter(isOptional),
};

/** Servers that nothing brings by itself: `node test-servers/install.mjs kubernetes` builds one, which takes some ten minutes. */
const BUILT = ['kubernetes'] as const;

/** The harnesses of every store, by its plainest client and topology. */
export const plainSuiteNames = harnessNames.filter(
  (name) => !fixtureNames.includes(name) && !topologyNames.includes(name),
);
/** One store for each way in which a lock is decided, with the rules in memory and in SQL: these differ where core or the suite is wrong. */
const familySuiteNames = [
  'memory',
  'redis-ioredis',
  'postgres-lease',
  'mysql',
  'etcd',
  'zookeeper',
  'sqlite',
];
const suiteFiles = (names: readonly string[]): string[] =>
  names.map((name) => `test/.conformance/${name}.test.ts`);

/** Without Go the step is reported as not run. */
const judgesStep: Step = {
  name: 'contract:judges',
  about:
    '@locks/history and Porcupine agree on histories: planted, random, and recorded on stores under faults',
  kind: 'timed',
  needs: ['redis'],
  async run() {
    const missing = await problemOf('go', ['version']);
    if (missing !== undefined)
      return { passed: 0, failed: 0, output: `there is no Go here: ${missing}`, notRun: true };
    const check = await checkOf(['the judges', 'node', ['contract-tests/src/judges/main.ts']]);
    return resultOf(
      [check],
      check.output.split('\n').filter((line) => /^\||^not recorded/.test(line)),
    );
  },
};

/** Everything that vitest runs. */
export const testSteps: readonly Step[] = [
  vitestStep('launcher', 'the commands themselves: exit codes, Ctrl-C, nothing left behind', 'scripts'),
  vitestStep('board', 'the page of `locks board` in Chromium', 'packages/cli', ['--dir=browser'], {
    needs: ['redis'],
    installs: 'chromium',
  }),
  ...allServers
    .filter((server) => existsSync(join(root, `contract-tests/${server}-faults`)))
    .map((server) =>
      vitestStep(
        `contract:faults-${server}`,
        `what users see when ${server} fails, in each way that is documented`,
        'contract-tests',
        [`--dir=${server}-faults`, '--no-file-parallelism'],
        { needs: [server], ...(SLOW.has(server) && { kind: 'alone' }) },
      ),
    ),
  ...BUILT.map((server) =>
    vitestStep(
      `contract:faults-${server}`,
      `what users see when ${server} fails, where it was built`,
      'contract-tests',
      [`--dir=${server}-faults`, '--no-file-parallelism', '--passWithNoTests'],
      { uses: [] },
    ),
  ),
  vitestStep(
    'contract:faults-postgres-js',
    'the same where a client is postgres.js',
    'contract-tests',
    ['--dir=postgres-faults', '--no-file-parallelism'],
    { needs: ['postgres'] },
    { LOCKS_POSTGRES_DRIVER: 'postgres-js' },
  ),
  ...workspacePackages
    .filter((one) => one.shortName !== 'contract-tests' && one.shortName !== 'examples')
    .filter((one) => hasTests(one) || one.path.startsWith('packages/'))
    .flatMap(unitSteps),
  conformanceOf(familySuiteNames),
  vitestStep(
    'contract:topologies',
    'the conformance suite on every other store and topology, and by every other client',
    'contract-tests',
    [
      '--dir=test',
      ...['mutants', ...BESIDE_THE_SUITE].map((name) => `--exclude=**/${name}.test.ts`),
      ...suiteFiles(familySuiteNames).map((file) => `--exclude=**/${file.replace('test/', '')}`),
    ],
    { kind: 'alone', uses: allServers },
  ),
  vitestStep(
    'contract:others',
    'the suite itself, the guide, options of every function, Web Locks, elections and jobs of several processes',
    'contract-tests',
    BESIDE_THE_SUITE.map((name) => `test/${name}.test.ts`),
    { kind: 'alone', uses: allServers },
  ),
  redisVersionsStep(),
  rolloverStep(),
  judgesStep,
  vitestStep(
    'contract:mutants',
    'the conformance suite catches backends that are broken in safety or in liveness',
    'contract-tests',
    ['test/mutants.test.ts'],
    { kind: 'alone' },
  ),
  vitestStep(
    'contract:load',
    'thousands of waiters, releases, slots and names of one process, which cost its other locks and its memory nothing',
    'contract-tests',
    ['--dir=load', '--no-file-parallelism'],
    { kind: 'alone', needs: systemServers },
  ),
  vitestStep(
    'contract:storm',
    'a storm on every store: processes are killed, stand still and lose their connections; a checker judges each history',
    'contract-tests',
    ['--dir=storm'],
    { kind: 'alone', uses: allServers },
  ),
  vitestStep(
    'contract:stall',
    'an event loop that stands still, on every store: nothing is given up, no lock is left, and a thread keeps the leases',
    'contract-tests',
    ['--dir=stall'],
    { kind: 'alone', uses: allServers },
  ),
  vitestStep('examples', 'every example runs and does what it says', 'examples', [], { uses: allServers }),
];

/** The two backends that show most of what a change of core or of the suite breaks. */
export const quickConformanceStep: Step = vitestStep(
  'contract:quick',
  'the conformance suite on memory and redis-ioredis',
  'contract-tests',
  suiteFiles(['memory', 'redis-ioredis']),
  { needs: ['redis'], onlyWhenNamed: true },
);

/** The suite on the plainest client and topology of stores. */
export function conformanceOf(names: readonly string[]): Step {
  return vitestStep(
    'contract:conformance',
    'the conformance suite on stores of each kind, by the plainest client and topology',
    'contract-tests',
    suiteFiles(names),
    { kind: 'alone', uses: [...new Set(names.flatMap((name) => serversOf(name)))] },
  );
}

function redisVersionsStep(): Step {
  const step = vitestStep(
    'contract:redis-versions',
    'a server of Redis that is upgraded, and one that is old again, under leases, waiters and releases',
    'contract-tests',
    ['--dir=redis-versions'],
    { needs: ['redis'] },
  );
  return {
    ...step,
    async run(context) {
      for (const version of ['redis-7.0', 'redis-8.6', 'valkey-9']) {
        const problem = await problemOf('node', ['test-servers/fetch-version.mjs', version]);
        if (problem !== undefined) return { passed: 0, failed: 0, output: problem, notRun: true };
      }
      return step.run(context);
    },
  };
}

/** Libraries whose language is not installed are told of: their tests cannot run. */
function rolloverStep(): Step {
  const step = vitestStep(
    'contract:rollover',
    'an application whose processes change one by one from another lock on Redis to ours, ten libraries, three languages',
    'contract-tests',
    ['--dir=rollover'],
    { needs: ['redis'] },
  );
  return {
    ...step,
    async run(context) {
      const notes: string[] = [];
      for (const { name, build } of oldLocks) {
        const missing = await build?.();
        if (missing !== undefined) notes.push(`without ${name}: ${missing}`);
      }
      return { ...(await step.run(context)), notes };
    },
  };
}

/** The tests of a package, and apart from them those of its files that take long, or run alone. */
function unitSteps({ path, shortName }: WorkspacePackage): Step[] {
  // The files of a built server that need none run in any case.
  const uses = BUILT.some((server) => server === shortName) ? [] : ALSO_USED[shortName];
  const more = { needs: serversOf(shortName), ...(uses && { uses }), concerns: [shortName] };
  const long = LONG_FILES[shortName] ?? [];
  const alone = ALONE_FILES[shortName] ?? [];
  const name = `unit:${shortName}`;
  const others = [...long, ...alone].map((file) => `--exclude=**/${file}.test.ts`);
  const stepOf = (kind: 'long' | 'alone', files: readonly string[], rest: Partial<Step>): Step[] => {
    const selection = files.map((file) => `${file}.test.ts`);
    const about = `those that ${kind === 'long' ? 'take long' : 'run alone'}: ${files.join(', ')}`;
    return files.length > 0 ? [vitestStep(`${name}:${kind}`, about, path, selection, rest)] : [];
  };
  return [
    vitestStep(name, `the tests of ${path}`, path, others, more),
    ...stepOf('long', long, more),
    ...stepOf('alone', alone, { ...more, kind: 'alone' }),
  ];
}

/**
 * Tests that vitest runs in a folder. Files named after a missing server that the step `uses` cannot run: the step of that server has
 * failed, or the user allows it to be missing, or it has to be built first ({@link BUILT}).
 */
function vitestStep(
  name: string,
  about: string,
  folder: string,
  selection: readonly string[] = [],
  more: Partial<Step> = {},
  environment: NodeJS.ProcessEnv = {},
): Step {
  return {
    name,
    about,
    kind: 'timed',
    ...more,
    async run({ missing, testArguments }) {
      const unbuilt = (more.uses ? BUILT : []).filter((server) => !canFindServer(server));
      const absent: string[] = [...(more.uses ?? []).filter((server) => missing.has(server)), ...unbuilt];
      const args = [...selection, ...absent.map((server) => `--exclude=**/*${server}*`), ...testArguments];
      const env = { ...environment, ...(more.uses && { LOCKS_MISSING_SERVERS: absent.join(',') }) };
      const result = await runVitest(join(root, folder), args, env);
      return absent.length === 0
        ? result
        : { ...result, notes: [`without the files of ${absent.join(', ')}`] };
    },
  };
}
