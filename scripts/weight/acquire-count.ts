// How many functions, and files, of `packages/*/src` an acquire on ioredis runs through, from its call to its lease: as V8's precise
// coverage counts them, after others of the same kind. A process of its own holds the lock that is waited for.
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { Session } from 'node:inspector/promises';
import { createRequire, registerHooks } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { root } from '../launcher/root.mjs';

export interface AcquireCount {
  readonly name: string;
  readonly files: number;
  readonly functions: readonly string[];
}

const ROUNDS = 4;
/** Until the waiter is in the queue and its connection listens. */
const QUEUED_MS = 100;
const PACKAGES = pathToFileURL(join(root, 'packages/')).href;

// The packages are run from their sources: the files that are counted are those that are read.
registerHooks({
  resolve(specifier, context, next) {
    const [, name, entry = ''] = /^@locks\/([^/]+)(\/.*)?$/.exec(specifier) ?? [];
    return next(name === undefined ? specifier : `${PACKAGES}${name}/src${entry}/index.ts`, context);
  },
});

async function connect(url: string) {
  const { createLocks } = await import('../../packages/core/src/index.ts');
  const { redisBackend } = await import('../../packages/redis-ioredis/src/index.ts');
  const { Redis } = createRequire(new URL('redis-ioredis/', PACKAGES))('ioredis') as {
    Redis: new (url: string) => Parameters<typeof redisBackend>[0] & { quit(): Promise<unknown> };
  };
  const client = new Redis(url);
  const locks = createLocks(redisBackend(client));
  return { lock: locks.lock('weight'), close: () => locks.close().then(() => client.quit()) };
}

/** What runs in the process that holds the lock: it acquires, and releases when it is told to. */
async function hold(url: string): Promise<void> {
  const { lock, close } = await connect(url);
  for (let round = 0; round < ROUNDS; round += 1) {
    const lease = await lock.acquire();
    process.send?.('held');
    await once(process, 'message');
    await lease.release();
  }
  await close();
  process.disconnect();
}

/** Counts the last of a few acquires. `prepare` runs before each of them, `begun` after its call. */
async function count(
  name: string,
  acquire: () => Promise<{ release(): Promise<void> }>,
  prepare: () => Promise<unknown> = async () => {},
  begun: () => Promise<unknown> = async () => {},
): Promise<AcquireCount> {
  using session = Object.assign(new Session(), { [Symbol.dispose]: () => session.disconnect() });
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  let functions: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await prepare();
    await session.post('Profiler.takePreciseCoverage');
    const acquiring = acquire();
    await begun();
    const lease = await acquiring;
    const { result } = await session.post('Profiler.takePreciseCoverage');
    functions = result
      .filter(({ url }) => url.startsWith(PACKAGES))
      .flatMap(({ url, functions: all }) =>
        all
          .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
          .map(({ functionName }) => `${url.slice(PACKAGES.length)} ${functionName || '(anonymous)'}`),
      );
    await lease.release();
  }
  return { name, files: new Set(functions.map((each) => each.split(' ')[0])).size, functions };
}

/** Starts a Redis of its own. */
export async function countAcquires(): Promise<AcquireCount[]> {
  const { startRedis } = await import('../../test-servers/src/index.ts');
  await using redis = await startRedis();
  const { lock, close } = await connect(redis.url);
  const uncontended = await count('that nobody contends', () => lock.acquire());
  const holder = fork(fileURLToPath(import.meta.url), [redis.url]);
  const ended = once(holder, 'exit');
  const held = on(holder, 'message');
  const waiting = await count(
    'that waits for another process',
    () => lock.acquire(),
    () => held.next(),
    async () => {
      await delay(QUEUED_MS);
      holder.send('release');
    },
  );
  await Promise.all([close(), ended]);
  return [uncontended, waiting];
}

const [, , url] = process.argv;
if (import.meta.main && url !== undefined) await hold(url);
