import { join } from 'node:path';
import { root } from '../../launcher/root.mjs';
import { commandStep, type CheckCommand } from '../command-step.ts';
import { matrixGenerator } from '../generators.ts';
import type { Step, StepResult } from '../step.ts';

const alertsFolder = join(root, 'packages/opentelemetry');

/** How many schedules run, the same on every machine, and then for how many seconds others that were never run before. */
type Extents = Readonly<Record<'rules' | 'quorum' | 'redis' | 'mysql' | 'record', readonly [number, number]>>;

const SHORT: Extents = {
  rules: [1_000, 1],
  quorum: [500, 1],
  redis: [300, 2],
  mysql: [250, 1],
  record: [150, 1],
};
const LONG: Extents = {
  rules: [5_500, 4],
  quorum: [2_000, 4],
  redis: [1_500, 5],
  mysql: [1_000, 2],
  record: [700, 2],
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
const siteStep: Step = { ...buildSite, run: (context) => (built ??= buildSite.run(context)) };

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
  simulation(
    'simulation:short',
    '2 000 schedules with faults in virtual time, and fresh ones for 6 s',
    SHORT,
  ),
  simulation('simulation:long', '10 000 schedules, and fresh ones for 17 s, whose seeds it prints', LONG),
  commandStep(
    {
      name: 'rules:mutants',
      about:
        'the tests of core notice 76 of 100 mutants that StrykerJS makes of its rules and its leases, or more',
      kind: 'alone',
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
    about: 'docs/compatibility.md and its page of cases agree with the reports of the conformance suite',
    kind: 'alone',
  },
  () => [[matrixGenerator.name, 'node', [matrixGenerator.file, '--check']]],
);

/** Core in virtual time (docs/simulation.md). It never waits, and no result depends on how fast it runs. */
function simulation(name: string, about: string, extents: Extents): Step {
  const simulate = (backend: string, ...which: string[]): CheckCommand => [
    backend,
    'node',
    ['simulation/src/main.ts', '--backend', backend, ...which],
  ];
  return commandStep({ name, about, kind: 'static', shows: /^\w+: \d+ schedules from seed/ }, () =>
    Object.entries(extents).flatMap(([backend, [schedules, seconds]]) => [
      simulate(backend, '--seed', '1', '--schedules', `${schedules}`),
      simulate(backend, '--seconds', `${seconds}`),
      // A quorum hands nothing over.
      ...(backend === 'quorum'
        ? []
        : [simulate(backend, '--hand-over', '--seed', '1', '--schedules', `${schedules / 5}`)]),
    ]),
  );
}
