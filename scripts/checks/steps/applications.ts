import { join } from 'node:path';
import { applicationFolder } from '../application-folder.ts';
import { type CheckCommand, commandStep } from '../command-step.ts';
import { compilerPath } from '../compilers.ts';
import { nodesOfUsers } from '../nodes.ts';
import { asUnderNode, oneCopy, runtimesIn, twoCopies } from '../runtimes.ts';
import type { Step } from '../step.ts';

const MAIN = 'two-copies/main.js';

/** What a library's transaction does with a lock and a fenced write: scripts/applications/orms/main.js. */
const IN_TRANSACTION = {
  isHeldInside: true,
  isWritten: true,
  afterCommit: [2, true],
  rolledBack: 'rolled back',
  afterRollback: [2, true],
  tried: false,
  timeout: 'LOCK_TIMEOUT',
  afterTimeout: 4,
  lost: 'LOCK_LOST',
  refusedName: 'LOCK_CONFLICT',
  afterLoss: 5,
  afterNested: [true, true],
  outside: 'LOCK_INVALID_ARGUMENT',
  wrongKind: 'LOCK_INVALID_ARGUMENT',
};

/** What five processes that migrate at once do, and one that follows one that died: scripts/applications/orms/migrations.js. */
const MIGRATED_ONCE = {
  exitCodes: [0, 0, 0, 0, 0],
  migratedBy: 1,
  afterDeath: 0,
  migratedAfterDeath: 1,
};

/** What an event loop that was blocked finds: scripts/applications/renewal-thread/outcomes.js. */
const KEPT = { withThread: 'held', without: 'LOCK_LOST', isRefused: true };

/** Clients that Bun has, and no other runtime. */
const BUILT_INTO_BUN = ['bun-redis', 'bun-sql'];

/** The packed packages in applications that have tools and runtimes of their own. */
export const applicationSteps: readonly Step[] = [
  commandStep(
    {
      name: 'applications:tools',
      about:
        'Jest, Vitest and its pools, esbuild, Vite SSR, webpack, tsx, NestJS; renewal threads in them; ES modules with a CommonJS dependency',
      kind: 'static',
    },
    async () => {
      const cwd = await applicationFolder('tools');
      const run = (name: string, ...args: string[]): CheckCommand => [name, 'node', args, { cwd }];
      const prints = (name: string, expected: object, ...args: string[]): CheckCommand => [
        name,
        'node',
        args,
        { cwd, expected },
      ];
      const jest = 'node_modules/jest/bin/jest.js';
      const vitest = 'node_modules/vitest/vitest.mjs';
      const esbuild = (format: string, file: string): readonly CheckCommand[] => [
        run(
          `esbuild to ${format}`,
          'node_modules/esbuild/bin/esbuild',
          ...[MAIN, '--bundle', '--platform=node', `--format=${format}`, `--outfile=${file}`],
        ),
        prints(`the output of esbuild, ${format}`, oneCopy, file),
      ];
      return [
        run('Jest', jest, '--rootDir=jest'),
        run('Jest with ES modules', '--experimental-vm-modules', jest, '--rootDir=jest-esm'),
        ...['forks', 'threads', 'vmThreads', 'vmForks'].map((pool) =>
          run(`Vitest, ${pool}`, vitest, 'run', '--root=vitest', `--pool=${pool}`),
        ),
        ...esbuild('esm', 'esbuild/out.mjs'),
        ...esbuild('cjs', 'esbuild/out.cjs'),
        run(
          'Vite SSR',
          'node_modules/vite/bin/vite.js',
          ...['build', 'vite', '--ssr', `../${MAIN}`, '--outDir=out'],
        ),
        prints('the output of Vite', oneCopy, 'vite/out/main.js'),
        ...nestjsIn(cwd),
        ...renewalThreadsIn(cwd),
        ...(await nodesOfUsers()).flatMap(({ version, executable }): CheckCommand[] => [
          [`import and require on Node ${version}`, executable, [MAIN], { cwd, expected: oneCopy }],
          [
            `two copies on Node ${version}`,
            executable,
            ['--no-experimental-require-module', MAIN],
            { cwd, expected: twoCopies },
          ],
        ]),
      ];
    },
  ),
  commandStep(
    {
      name: 'applications:runtimes',
      about:
        'Bun and Deno: memory, SQLite, ioredis, node-redis, PostgreSQL by pg and postgres.js; the suite on the clients of Bun; a client of ioredis 5 beside ioredis 6',
      kind: 'alone',
      repeats: true,
      needs: ['redis', 'postgres'],
      lanes: 2,
    },
    async () => {
      const cwd = await applicationFolder('tools');
      const stores = [
        ...['memory', 'sqlite', 'file', 'ioredis', 'ioredis-5', 'node-redis'],
        ...['postgres', 'postgres-advisory', 'postgres-js'],
      ];
      const ofRuntimes = (await runtimesIn(cwd)).map(({ name, command: [program = '', ...args], copies }) => [
        ...[...stores, ...(name.startsWith('Bun') ? BUILT_INTO_BUN : [])].map(
          (store): CheckCommand => [
            `${name}: ${store}`,
            program,
            [...args, 'runtimes/main.js', store],
            { cwd, expected: asUnderNode },
          ],
        ),
        ...(name.startsWith('Bun') ? BUILT_INTO_BUN : []).map(
          (client): CheckCommand => [
            `${name}: the suite on ${client}`,
            program,
            ['runtimes/bun-suite.js', client],
            { cwd, expected: { failed: [], isMost: true } },
          ],
        ),
        ...['sqlite', 'file'].map((store): CheckCommand => {
          const expected = { said: 'holds', isRefused: true, outcome: 'held' };
          return [
            `${name}: two ages, ${store}`,
            program,
            [...args, 'runtimes/two-ages.js', store],
            { cwd, expected },
          ];
        }),
        ...['sqlite', 'file', 'ioredis'].map(
          (store): CheckCommand => [
            `${name}: a renewal thread, ${store}`,
            program,
            [...args, 'runtimes/renewal-thread.js', store],
            { cwd, expected: KEPT },
          ],
        ),
        [`${name}: import and require`, program, [...args, MAIN], { cwd, expected: copies }] as const,
      ]);
      return ofRuntimes.flat();
    },
  ),
  commandStep(
    {
      name: 'applications:old-clients',
      about:
        'the oldest supported version of every client, of their types, of NestJS and of vitest; the suite on ioredis 5 and on iovalkey',
      kind: 'timed',
      repeats: true,
      needs: ['redis', 'postgres', 'mysql', 'etcd', 'zookeeper'],
    },
    async () => {
      const cwd = await applicationFolder('old-clients');
      const stores = [
        'ioredis',
        'iovalkey',
        'node-redis',
        'postgres',
        'postgres-advisory',
        'postgres-js',
        'pglite',
        'mysql',
        'etcd',
        'zookeeper',
      ];
      const strict = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', 'node'];
      return [
        ...stores.map(
          (store): CheckCommand => [
            store,
            'node',
            ['runtimes/main.js', store],
            { cwd, expected: asUnderNode },
          ],
        ),
        ...['ioredis', 'iovalkey'].map((library): CheckCommand => {
          const env = { LOCKS_IOREDIS: library };
          return [`the suite on ${library}`, 'node', ['--test', 'old-clients/suite.test.js'], { cwd, env }];
        }),
        // A few cases suffice: they test the binding to vitest.
        [
          'the suite through vitest 3',
          'node',
          ['../node_modules/vitest/vitest.mjs', 'run', 'vitest.test', '-t', 'exclusion/'],
          { cwd: join(cwd, 'old-clients') },
        ],
        ['types', 'node', [compilerPath('typescript-5.9'), ...strict, 'old-clients/use.ts'], { cwd }],
        ...nestjsIn(cwd),
      ];
    },
  ),
  commandStep(
    {
      name: 'applications:orms',
      about:
        'locks and fenced writes in the transactions of pg, postgres.js, Kysely, Knex, Drizzle, TypeORM, MikroORM, Prisma; five processes that migrate at once',
      kind: 'timed',
      needs: ['postgres'],
      lanes: 2,
    },
    async () => {
      const cwd = join(await applicationFolder('orms'), 'orms');
      // To generate a client takes no schema engine, which only the site of Prisma has; its command looks for one all the same.
      const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
      const libraries = [
        'pg',
        'postgres.js',
        'kysely',
        'knex',
        'drizzle',
        'drizzle on postgres.js',
        'typeorm',
        'mikroorm',
      ];
      const prisma = 'node ../node_modules/prisma/build/index.js generate >&2 && exec node main.js prisma';
      return [
        ['prisma', 'sh', ['-c', prisma], { cwd, env, expected: IN_TRANSACTION }],
        ...libraries.map(
          (name): CheckCommand => [name, 'node', ['main.js', name], { cwd, expected: IN_TRANSACTION }],
        ),
        ...['drizzle', 'typeorm', 'knex', 'umzug', 'kysely'].map(
          (name): CheckCommand => [
            `migrations of ${name}`,
            'node',
            ['migrations.js', name],
            { cwd, expected: MIGRATED_ONCE },
          ],
        ),
      ];
    },
  ),
  commandStep(
    {
      name: 'applications:next',
      about: 'a build of Next.js with webpack and one with Turbopack; minutes, so only when it is named',
      kind: 'alone',
      onlyWhenNamed: true,
    },
    async () => {
      const cwd = join(await applicationFolder('next'), 'next');
      const env = { NEXT_TELEMETRY_DISABLED: '1' };
      // The route runs while the application is built: its answer is in a file.
      const expected = { holdCount: 2, redisBackend: 'function' };
      return ['--webpack', '--turbopack'].flatMap((bundler): CheckCommand[] => [
        [`no build before ${bundler}`, 'rm', ['-rf', '.next'], { cwd }],
        [
          `next build ${bundler}`,
          'node',
          ['../node_modules/next/dist/bin/next', 'build', bundler],
          { cwd, env },
        ],
        [`the route of ${bundler}`, 'cat', ['.next/server/app/stock.body'], { cwd, expected }],
      ]);
    },
  ),
];

function nestjsIn(cwd: string): readonly CheckCommand[] {
  const expected = { one: [5, 10, 15], mostOfOne: 1, mostOfTwo: 2, audit: 11, entries: 6, reports: 1 };
  return [
    ['NestJS, experimentalDecorators', 'node', [compilerPath('typescript-5.9'), '-p', 'nestjs'], { cwd }],
    ['NestJS', 'node', ['nestjs/dist/main.js'], { cwd, expected }],
  ];
}

/** The thread of docs/guides/long-synchronous-work.md in what bundlers write, and where it is refused. */
function renewalThreadsIn(folder: string): readonly CheckCommand[] {
  const cwd = join(folder, 'renewal-thread');
  const prints = (name: string, expected: object, ...args: string[]): CheckCommand => [
    `a renewal thread, ${name}`,
    'node',
    args,
    { cwd, expected },
  ];
  const esbuild = (format: string, ...args: string[]): CheckCommand => [
    `esbuild: ${args.join(' ')}`,
    'node',
    [
      '../node_modules/esbuild/bin/esbuild',
      'app.js',
      '--bundle',
      '--platform=node',
      `--format=${format}`,
      ...args,
    ],
    { cwd },
  ];
  const webpack = (how: string): CheckCommand => [
    `webpack, ${how}`,
    'node',
    ['build-with-webpack.js', how],
    { cwd },
  ];
  const program = '../node_modules/@locks/core/dist/renewal-thread/locks-renewal-thread.js';
  const module = join(cwd, 'locks-backend.js');
  const isRefused = { refused: 'LOCK_UNSUPPORTED' };
  return [
    prints('no bundler', KEPT, 'app.js'),
    prints('tsx', KEPT, '--import', 'tsx', 'app.js'),
    prints('node -e', KEPT, '-e', "import('./app.js')"),
    prints(
      'node -e with ES modules',
      { refused: 'LOCK_BACKEND' },
      '--input-type=module',
      '-e',
      "import './app.js'",
    ),
    esbuild('esm', 'locks-backend.js', '--packages=external', '--outdir=external'),
    prints('esbuild, external packages', KEPT, 'external/app.js'),
    esbuild('esm', 'locks-backend.js', program, '--entry-names=[name]', '--outdir=entries'),
    prints('esbuild, its program as an entry', KEPT, 'entries/app.js'),
    // Called as many applications are: what lies beside it must not be taken for the program of the thread.
    esbuild('esm', '--outfile=one/main.js'),
    prints('esbuild, one bundle', isRefused, 'one/main.js'),
    esbuild('cjs', '--outfile=one/main.cjs'),
    prints('esbuild, one bundle of CommonJS', isRefused, 'one/main.cjs', module),
    webpack('external'),
    prints('webpack, external packages', KEPT, 'webpack-external/main.js'),
    webpack('bundled'),
    prints('webpack, one bundle', isRefused, 'webpack-bundled/main.js'),
  ];
}
