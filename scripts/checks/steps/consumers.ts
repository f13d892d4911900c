import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { problemOfFirstSteps } from '../checkout-install.ts';
import { runCommand } from '../command.ts';
import { compilerPath } from '../compilers.ts';
import { consumerFolder } from '../consumer-folder.ts';
import { nodesOfUsers } from '../nodes.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

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
  {
    name: 'consumers:modules',
    about: 'import and require of the packed packages',
    kind: 'static',
    async run() {
      const folder = await consumerFolder();
      const use = async (file: string) => ({
        name: file,
        problem: await problemOfUse(process.execPath, folder, file),
      });
      return resultOf(await Promise.all(USES.map(use)));
    },
  },
  {
    name: 'consumers:checkout',
    about:
      'the two commands of the README that install from a checkout, in an empty folder, and its first program',
    kind: 'static',
    uses: ['redis'],
    async run({ missing }) {
      const hasRedis = !missing.has('redis');
      const problem = await problemOfFirstSteps(hasRedis);
      return resultOf([{ name: 'README.md', problem }], hasRedis ? [] : ['without Redis: not run']);
    },
  },
  {
    name: 'consumers:run',
    about: 'import and require of the packed packages on Node 20, 22, 24 and 26',
    kind: 'static',
    async run() {
      const folder = await consumerFolder();
      const checks = [];
      const nodes = await nodesOfUsers();
      for (const { version, executable } of nodes) {
        for (const file of USES) {
          checks.push({
            name: `${file} on Node ${version}`,
            problem: await problemOfUse(executable, folder, file),
          });
        }
      }
      return resultOf(checks, [`Node ${nodes.map((node) => node.version).join(', ')}`]);
    },
  },
  {
    name: 'consumers:types',
    about: 'the packed packages compile under --strict with older TypeScript, node16, nodenext and bundler',
    kind: 'static',
    async run() {
      const folder = await consumerFolder();
      const checks = [];
      for (const compiler of compilers) {
        for (const resolution of resolutions) {
          const problem = await problemOfTypes(compiler, folder, resolution);
          checks.push({ name: `${compiler}, ${resolution}`, problem });
        }
      }
      return resultOf(checks);
    },
  },
];

async function problemOfUse(node: string, folder: string, file: string): Promise<string | undefined> {
  const { ok, output, stdout } = await runCommand(node, [join(folder, file)], {
    cwd: folder,
    limitMs: 60_000,
  });
  if (!ok) return output;
  return stdout.trim() === JSON.stringify(expectedUse) ? undefined : `printed ${stdout.trim()}`;
}

async function problemOfTypes(compiler: string, folder: string, resolution: (typeof resolutions)[number]) {
  const config = join(folder, `tsconfig.${compiler}.${resolution}.json`);
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
  writeFileSync(
    config,
    JSON.stringify({ compilerOptions, files: resolution === 'bundler' ? ['use.ts'] : files }),
  );
  const { ok, output } = await runCommand(process.execPath, [compilerPath(compiler), '-p', config], {
    cwd: folder,
  });
  return ok ? undefined : output;
}
