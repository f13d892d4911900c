import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { commandStep, type CheckCommand } from '../command-step.ts';
import { matrixGenerator } from '../generators.ts';
import type { Step, StepResult } from '../step.ts';

const alertsFolder = join(root, 'packages/opentelemetry');

/** How many schedules run, the same on every machine, and then for how many seconds others that were never run before. */
type Extents = Readonly<
  Record<
    'rules' | 'quorum' | 'redis' | 'mysql' | 'record' | 'etcd' | 'zookeeper' | 'sqlite' | 'postgres' | 'file',
    readonly [number, number]
  >
>;

const SHORT: Extents = {
  rules: [1_000, 1],
  quorum: [500, 1],
  redis: [300, 2],
  mysql: [250, 1],
  record: [150, 1],
  etcd: [150, 1],
  zookeeper: [80, 1],
  sqlite: [120, 1],
  postgres: [20, 1],
  file: [100, 1],
};
/** The schedules behind those of `SHORT`, which `npm run test:all` has run by then. */
const LONG: Extents = {
  rules: [4_500, 4],
  quorum: [1_500, 4],
  redis: [1_200, 5],
  mysql: [750, 2],
  record: [550, 2],
  etcd: [550, 2],
  zookeeper: [550, 2],
  sqlite: [600, 2],
  postgres: [250, 2],
  file: [900, 3],
};

const buildSite = commandStep(
  {
    name: 'site',
    about: 'the website is built, and none of its links or anchors leads nowhere',
    kind: 'static',
    shows: /^site\/dist: /,
  },
  () => [['npm run site', 'node', ['site/src/main.ts']]],
);
let built: Promise<StepResult> | undefined;
const siteStep: Step = {
  ...buildSite,
  async run(context) {
    built ??= buildSite.run(context);
    const result = await built;
    // What is repeated alone is built again.
    if (result.failed > 0) built = undefined;
    return result;
  },
};

const openSite = commandStep(
  {
    name: 'site:browser',
    about:
      'the site in Chromium, on a phone and a desk, in both themes: accessibility, width, scripts, and what answers',
    kind: 'static',
    installs: 'chromium',
    shows: /^\d+ pages/,
  },
  () => [['Chromium', 'node', ['site/src/browser-check/main.ts']]],
);
const browserStep: Step = {
  ...openSite,
  async run(context) {
    const site = await siteStep.run(context);
    return site.failed > 0 ? site : openSite.run(context);
  },
};

/** Programs of other folders that end with what is wrong. */
export const programSteps: readonly Step[] = [
  commandStep(
    {
      name: 'alerts',
      about: 'the alerts of packages/opentelemetry fire when they should, by promtool of Prometheus',
      kind: 'static',
      installs: 'prometheus',
    },
    () => [
      ['generated/alerts.yml', 'promtool', ['check', 'rules', 'generated/alerts.yml'], { cwd: alertsFolder }],
      ['test/alerts.test.yml', 'promtool', ['test', 'rules', 'test/alerts.test.yml'], { cwd: alertsFolder }],
    ],
  ),
  siteStep,
  browserStep,
  simulation('simulation:short', 'of each store', SHORT),
  simulation('simulation:long', 'of each store more', LONG, SHORT),
  commandStep(
    {
      name: 'rules:mutants',
      about:
        'the tests of core notice 76 of 100 mutants that StrykerJS makes of its rules and its leases, or more',
      kind: 'alone',
      onlyWhenNamed: true,
      shows: /^All files/,
    },
    () => [
      [
        'packages/core/stryker.config.json',
        'node',
        ['node_modules/@stryker-mutator/core/bin/stryker.js', 'run'],
        { cwd: join(root, 'packages/core') },
      ],
    ],
  ),
  commandStep(
    { name: 'demo', about: 'processes sell one stock, without and with a lock', kind: 'timed' },
    () => [['npm run demo', 'node', ['examples/src/demo/main.ts']]],
  ),
];

/** The step reads the reports of the suites, so the plan has it behind them. */
export const matrixStep = commandStep(
  {
    name: 'matrix',
    about:
      'docs/compatibility.md and contract-tests/generated/matrix.json agree with the reports of the conformance suite',
    kind: 'alone',
  },
  () => [[matrixGenerator.name, 'node', [matrixGenerator.file, '--check']]],
);

function backendsOf(extents: Extents): (keyof Extents)[] {
  return Object.keys(extents) as (keyof Extents)[];
}

/** A quorum and a session hand nothing over, and no other client renews for them; the threads of a process would share its files. */
function variantsOf(backend: string): readonly string[] {
  if (backend === 'quorum' || backend === 'zookeeper' || backend === 'file') return [];
  return backend === 'sqlite' ? ['transfer'] : ['transfer', 'thread'];
}

/** Core in virtual time (docs/simulation.md). It never waits, and no result depends on how fast it runs. */
function simulation(name: string, which: string, extents: Extents, before?: Extents): Step {
  const each = Object.values(extents).map(([schedules]) => schedules);
  const about = `${Math.min(...each)} to ${Math.max(...each)} schedules ${which} with faults in virtual time, and fresh ones for some seconds`;
  const simulate = (backend: string, ...options: string[]): CheckCommand => [
    backend,
    'node',
    ['simulation/src/main.ts', '--backend', backend, ...options],
  ];
  const shows = /^\w+: \d+ schedules from seed/;
  return commandStep({ name, about, kind: 'static', concerns: ['simulation'], shows }, () =>
    backendsOf(extents).flatMap((backend) => {
      const [schedules, seconds] = extents[backend];
      const [done = 0] = before?.[backend] ?? [];
      return [
        simulate(backend, '--seed', `${done + 1}`, '--schedules', `${schedules}`),
        simulate(backend, '--seconds', `${seconds}`),
        ...variantsOf(backend).map((variant) =>
          simulate(
            backend,
            ...['--variant', variant, '--seed', `${done / 5 + 1}`, '--schedules', `${schedules / 5}`],
          ),
        ),
      ];
    }),
  );
}
