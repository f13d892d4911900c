import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { applicationFolder } from '../application-folder.ts';
import { problemOf } from '../command.ts';
import { compilerPath } from '../compilers.ts';
import { nodesOfUsers } from '../nodes.ts';
import { asUnderNode, oneCopy, problemOfOutput, runtimesIn, twoCopies, withServers } from '../runtimes.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

interface Check {
  readonly name: string;
  readonly problem: string | undefined;
}

/** The packed packages in applications that have tools and runtimes of their own. */
export const applicationSteps: readonly Step[] = [
  {
    name: 'applications:tools',
    about: 'Jest, Vitest, esbuild, Vite SSR, NestJS; ES modules with a CommonJS dependency',
    kind: 'static',
    async run() {
      const folder = await applicationFolder('tools');
      const node = process.execPath;
      const bin = (path: string) => join(folder, 'node_modules', path);
      const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
        problemOf(node, args, { cwd: folder, env: { ...process.env, ...env }, limitMs: 120_000 });
      const prints = (args: readonly string[], expected: object) =>
        problemOfOutput(node, args, folder, expected);
      const main = 'two-copies/main.js';
      const bundled = async (format: string, outfile: string) =>
        (await run([
          bin('esbuild/bin/esbuild'),
          main,
          '--bundle',
          '--platform=node',
          `--format=${format}`,
          `--outfile=${outfile}`,
        ])) ?? (await prints([outfile], oneCopy));

      const checks: Check[] = [
        { name: 'Jest', problem: await run([bin('jest/bin/jest.js'), '--rootDir=jest']) },
        {
          name: 'Jest with ES modules',
          problem: await run(['--experimental-vm-modules', bin('jest/bin/jest.js'), '--rootDir=jest-esm']),
        },
        { name: 'Vitest', problem: await run([bin('vitest/vitest.mjs'), 'run', '--root=vitest']) },
        { name: 'esbuild to an ES module', problem: await bundled('esm', 'esbuild/out.mjs') },
        { name: 'esbuild to CommonJS', problem: await bundled('cjs', 'esbuild/out.cjs') },
        {
          name: 'Vite SSR',
          problem:
            (await run([bin('vite/bin/vite.js'), 'build', 'vite', '--ssr', `../${main}`, '--outDir=out'])) ??
            (await prints(['vite/out/main.js'], oneCopy)),
        },
        {
          name: 'NestJS, experimentalDecorators',
          problem:
            (await run([compilerPath('typescript-5.9'), '-p', 'nestjs'])) ??
            (await prints(['nestjs/dist/main.js'], {
              one: [5, 10, 15],
              mostOfOne: 1,
              mostOfTwo: 2,
              audit: 11,
              entries: 6,
              reports: 1,
            })),
        },
      ];
      for (const { version, executable } of await nodesOfUsers()) {
        const apart = ['--no-experimental-require-module', main];
        checks.push(
          {
            name: `import and require on Node ${version}`,
            problem: await problemOfOutput(executable, [main], folder, oneCopy),
          },
          {
            name: `two copies on Node ${version}`,
            problem: await problemOfOutput(executable, apart, folder, twoCopies),
          },
        );
      }
      return resultOf(checks);
    },
  },
  {
    name: 'applications:runtimes',
    about:
      'Bun and Deno: memory, SQLite, ioredis, node-redis, PostgreSQL; a client of ioredis 5 beside ioredis 6',
    kind: 'alone',
    needs: ['redis', 'postgres'],
    async run() {
      const folder = await applicationFolder('tools');
      const runtimes = await runtimesIn(folder);
      const stores = [
        'memory',
        'sqlite',
        'ioredis',
        'ioredis-5',
        'node-redis',
        'postgres',
        'postgres-advisory',
      ];
      const checks = await withServers(['redis', 'postgres'], (env) =>
        Promise.all(
          runtimes.map(async ({ name, command, copies }) => {
            const ofRuntime: Check[] = [];
            const [executable = '', ...args] = command;
            for (const store of stores) {
              const problem = await problemOfOutput(
                executable,
                [...args, 'runtimes/main.js', store],
                folder,
                asUnderNode,
                env,
              );
              ofRuntime.push({ name: `${name}: ${store}`, problem });
            }
            const problem = await problemOfOutput(
              executable,
              [...args, 'two-copies/main.js'],
              folder,
              copies,
            );
            return [...ofRuntime, { name: `${name}: import and require`, problem }];
          }),
        ),
      );
      return resultOf(checks.flat(), [runtimes.map((runtime) => runtime.name).join(', ')]);
    },
  },
  {
    name: 'applications:old-clients',
    about:
      'the oldest supported version of every client, of their types, and of vitest; the suite on ioredis 5',
    kind: 'timed',
    needs: ['redis', 'postgres', 'mysql', 'etcd', 'zookeeper'],
    async run() {
      const folder = await applicationFolder('old-clients');
      const node = process.execPath;
      const stores = ['ioredis', 'node-redis', 'postgres', 'postgres-advisory', 'mysql', 'etcd', 'zookeeper'];
      const checks = await withServers(['redis', 'postgres', 'mysql', 'etcd', 'zookeeper'], async (env) => {
        const results: Check[] = [];
        for (const store of stores) {
          const problem = await problemOfOutput(node, ['runtimes/main.js', store], folder, asUnderNode, env);
          results.push({ name: store, problem });
        }
        const inFolder = { cwd: folder, env: { ...process.env, ...env }, limitMs: 180_000 };
        const suite = ['--test', 'old-clients/suite.test.js'];
        results.push({ name: 'the suite on ioredis 5', problem: await problemOf(node, suite, inFolder) });
        // A few cases suffice: they test the binding to vitest.
        const vitest = ['../node_modules/vitest/vitest.mjs', 'run', 'vitest.test', '-t', 'exclusion/'];
        results.push({
          name: 'the suite through vitest 3',
          problem: await problemOf(node, vitest, { ...inFolder, cwd: join(folder, 'old-clients') }),
        });
        return results;
      });
      const config = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', 'node'];
      const problem = await problemOf(
        node,
        [compilerPath('typescript-5.9'), ...config, 'old-clients/use.ts'],
        { cwd: folder },
      );
      return resultOf([...checks, { name: 'types', problem }]);
    },
  },
  {
    name: 'applications:next',
    about: 'a build of Next.js with webpack and one with Turbopack; minutes, so only when it is named',
    kind: 'alone',
    onlyWhenNamed: true,
    async run() {
      const folder = await applicationFolder('next');
      const next = join(folder, 'next');
      const checks: Check[] = [];
      for (const bundler of ['--webpack', '--turbopack']) {
        rmSync(join(next, '.next'), { recursive: true, force: true });
        const args = [join(folder, 'node_modules/next/dist/bin/next'), 'build', bundler];
        const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
        const failed = await problemOf(process.execPath, args, { cwd: next, env });
        checks.push({ name: `next build ${bundler}`, problem: failed ?? problemOfRoute(next) });
      }
      return resultOf(checks);
    },
  },
];

/** The route ran while the application was built: its answer is in a file. */
function problemOfRoute(next: string): string | undefined {
  const file = join(next, '.next/server/app/stock.body');
  if (!existsSync(file)) return `${file} was not written`;
  const said = readFileSync(file, 'utf8');
  const expected = JSON.stringify({ holdCount: 2, redisBackend: 'function' });
  return said === expected ? undefined : `answered ${said}`;
}
