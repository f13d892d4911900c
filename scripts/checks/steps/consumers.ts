import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { hostPath } from '../../launcher/environment.mjs';
import { type CheckCommand, commandStep } from '../command-step.ts';
import { compilerPath } from '../compilers.ts';
import { consumerFolder } from '../consumer-folder.ts';
import { nodesOfUsers } from '../nodes.ts';
import { firstSteps, PRINTED, writeFirstProgram } from '../first-steps.ts';
import type { Step } from '../step.ts';

export const expectedUse = {
  secondWasRefused: true,
  tokenRose: true,
  timeoutIsTold: true,
  modulesWithoutExports: [],
};
/** One application of each module format. */
const USES = ['use.mjs', 'use.cjs'];
const compilers = ['typescript-5.4', 'typescript-5.9', 'typescript'];
const resolutions = ['node16', 'nodenext', 'bundler'] as const;
/** CommonJS files, whose imports `module: node16` refuses where a package has ES modules only. */
const files = ['use.ts', 'use-commonjs.cts'];

/** The packed packages in an application outside of the workspace. */
export const consumerSteps: readonly Step[] = [
  commandStep(
    { name: 'consumers:modules', about: 'import and require of the packed packages', kind: 'static' },
    () => usesOn([{ version: process.version, executable: process.execPath }]),
  ),
  commandStep(
    {
      name: 'consumers:checkout',
      about:
        'the two commands of the README that install from a checkout, in an empty folder, and its first program; the same with pnpm',
      kind: 'static',
      uses: ['redis'],
    },
    ({ REDIS_URL }) => {
      const { pack, install } = firstSteps();
      // The space is on purpose: paths of users have them. The tarballs go to another folder than `packed/`, which may be in use.
      const beside = join(mkdtempSync(join(tmpdir(), 'checkout-')), 'first steps');
      const project = join(beside, 'project');
      const ofPnpm = join(beside, 'project of pnpm');
      for (const folder of [project, ofPnpm]) {
        mkdirSync(folder, { recursive: true });
        writeFirstProgram(folder);
      }
      const env = { PATH: hostPath() };
      const packing = `${pack} --to "${join(beside, 'locks/packed')}"`;
      const installing = `${install} --no-audit --no-fund --prefer-offline`;
      const adding = `${install.replace('npm i', 'pnpm add')} --prefer-offline`;
      return [
        [pack, 'sh', ['-c', packing], { env }],
        [install, 'sh', ['-c', installing], { env, cwd: project }],
        ['pnpm add', 'sh', ['-c', adding], { cwd: ofPnpm }],
        ...(REDIS_URL === undefined
          ? []
          : [project, ofPnpm].map(
              (cwd) =>
                [`first.mjs in ${basename(cwd)}`, 'node', ['first.mjs'], { cwd, expected: PRINTED }] as const,
            )),
      ];
    },
  ),
  commandStep(
    {
      name: 'consumers:run',
      about: 'import and require of the packed packages on Node 20, 22, 24 and 26',
      kind: 'static',
    },
    async () => usesOn(await nodesOfUsers()),
  ),
  commandStep(
    {
      name: 'consumers:types',
      about: 'the packed packages compile under --strict with older TypeScript, node16, nodenext and bundler',
      kind: 'static',
    },
    async () => {
      const cwd = await consumerFolder();
      return compilers.flatMap((compiler) =>
        resolutions.map((resolution): CheckCommand => {
          const config = writeConfig(cwd, resolution);
          return [`${compiler}, ${resolution}`, 'node', [compilerPath(compiler), '-p', config], { cwd }];
        }),
      );
    },
  ),
  // The suite is imported on every Node, and required on the oldest and the newest (consumers:run requires it on all).
  commandStep(
    {
      name: 'suite-on-nodes',
      about: 'the conformance suite of the packed packages through node:test on Node 20, 22, 24 and 26',
      // The cases judge time. All suites run at once, since they mostly wait; what failed runs once more alone.
      kind: 'alone',
      lanes: 6,
      repeats: true,
      shows: /^ℹ (pass|fail|skipped) /,
    },
    async () => {
      const cwd = await consumerFolder();
      const nodes = await nodesOfUsers();
      const suites = [
        ...nodes.map((node) => [node, 'suite.test.mjs'] as const),
        ...[nodes[0], nodes.at(-1)].flatMap((node) => (node ? [[node, 'suite.test.cjs'] as const] : [])),
      ];
      return suites.map(([{ version, executable }, file]) => [
        `${file} on Node ${version}`,
        executable,
        ['--test', '--test-reporter=spec', file],
        // A suite without cases fails too.
        { cwd, limitMs: 180_000, expected: /^ℹ pass [1-9]/m },
      ]);
    },
  ),
];

async function usesOn(
  nodes: readonly { readonly version: string; readonly executable: string }[],
): Promise<readonly CheckCommand[]> {
  const cwd = await consumerFolder();
  return nodes.flatMap(({ version, executable }) =>
    USES.map(
      (file): CheckCommand => [
        `${file} on Node ${version}`,
        executable,
        [file],
        { cwd, expected: expectedUse },
      ],
    ),
  );
}

function writeConfig(folder: string, resolution: (typeof resolutions)[number]): string {
  const config = `tsconfig.${resolution}.json`;
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022', 'esnext.disposable'],
    module: resolution === 'bundler' ? 'esnext' : resolution,
    moduleResolution: resolution,
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
  };
  const content = { compilerOptions, files: resolution === 'bundler' ? ['use.ts'] : files };
  writeFileSync(join(folder, config), JSON.stringify(content));
  return config;
}
