// How many files of `packages/*/src`, and functions, an acquire runs through, from its call to its lease, and which calls go back to a
// file that the acquire came from. V8's precise coverage shows the functions, and the stack at the first statement of each shows its
// caller, after acquires of the same kind. A process of its own holds the lock that is waited for.
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type Debugger, type Profiler, Session } from 'node:inspector/promises';
import { createRequire, registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { LockBackend } from '../../packages/core/src/backend/types.ts';
import { root } from '../launcher/root.mjs';

export interface AcquireCount {
  readonly name: string;
  readonly files: number;
  /** The files that are not core's. */
  readonly filesOfStore: number;
  readonly functions: readonly string[];
  /** The calls of files that the callee had called before, itself or by others. An answer that comes by a callback is one too. */
  readonly backUp: readonly string[];
}

const ROUNDS = 4;
/** Until the waiter is in the queue and its connection listens. */
const QUEUED_MS = 100;
const PACKAGES = pathToFileURL(join(root, 'packages/')).href;

// The packages are run from their sources: the files that are counted are those that are read.
registerHooks({
  resolve(specifier, context, next) {
    const [, name, entry = ''] = /^@locks\/([^/]+)(\/.*)?$/.exec(specifier) ?? [];
    // Test servers stand on the suite's proxy, which no acquire runs through.
    if (name === undefined || name === 'test-servers' || entry.startsWith('/conformance'))
      return next(specifier, context);
    const folder = new URL(`${name}/src${entry}/index.ts`, PACKAGES);
    return next(existsSync(folder) ? folder.href : `${PACKAGES}${name}/src${entry}.ts`, context);
  },
});

interface Server extends AsyncDisposable {
  readonly url: string;
}

interface Store {
  start(): Promise<Server>;
  open(url: string): Promise<{ readonly backend: LockBackend; readonly end?: () => Promise<unknown> }>;
}

const servers = () => import('../../test-servers/src/index.ts');

/** Loads a client that a package is tested with. */
function client<T>(name: string, of: string): T {
  return createRequire(new URL(`${of}/`, PACKAGES))(name) as T;
}

const STORES: Readonly<Record<string, Store>> = {
  'redis-ioredis': {
    start: async () => (await servers()).startRedis(),
    async open(url) {
      const { redisBackend } = await import('../../packages/redis-ioredis/src/index.ts');
      type Redis = Parameters<typeof redisBackend>[0] & { quit(): Promise<unknown> };
      const { Redis } = client<{ Redis: new (url: string) => Redis }>('ioredis', 'redis-ioredis');
      const redis = new Redis(url);
      return { backend: redisBackend(redis), end: () => redis.quit() };
    },
  },
  postgres: {
    start: async () => (await servers()).startPostgres(),
    async open(url) {
      const { postgresLeaseBackend } = await import('../../packages/postgres/src/index.ts');
      return { backend: postgresLeaseBackend(url) };
    },
  },
  mysql: {
    start: async () => (await servers()).startMariadb(),
    async open(url) {
      const { mysqlBackend } = await import('../../packages/mysql/src/index.ts');
      type Pool = Parameters<typeof mysqlBackend>[0] & { end(): Promise<unknown> };
      const pool = client<{ createPool(url: string): Pool }>('mysql2/promise', 'mysql').createPool(url);
      return { backend: mysqlBackend(pool), end: () => pool.end() };
    },
  },
  etcd: {
    start: async () => (await servers()).startEtcd(),
    async open(url) {
      const { etcdBackend } = await import('../../packages/etcd/src/index.ts');
      return { backend: etcdBackend({ hosts: [url] }) };
    },
  },
  sqlite: {
    async start() {
      const folder = await mkdtemp(join(tmpdir(), 'locks-weight-'));
      return { url: join(folder, 'locks.db'), [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
    },
    async open(url) {
      const { sqliteBackend } = await import('../../packages/sqlite/src/index.ts');
      return { backend: sqliteBackend(url) };
    },
  },
};

export const STORE_NAMES: readonly string[] = Object.keys(STORES);

async function connect(store: string, url: string) {
  const { createLocks } = await import('../../packages/core/src/index.ts');
  const { backend, end } = await (STORES[store] as Store).open(url);
  const locks = createLocks(backend);
  return { lock: locks.lock('weight'), close: () => locks.close().then(end) };
}

/** What runs in the process that holds the lock: it acquires, and releases when it is told to. */
async function hold(store: string, url: string): Promise<void> {
  const { lock, close } = await connect(store, url);
  for (let round = 0; round <= ROUNDS; round += 1) {
    const lease = await lock.acquire();
    process.send?.('held');
    await once(process, 'message');
    await lease.release();
  }
  await close();
  process.disconnect();
}

/** The calls from file to file, in the order of the first of each. */
class Calls {
  readonly #callees = new Map<string, Set<string>>();
  readonly backUp = new Set<string>();

  /** Takes note of the call that the innermost two files of a stack are a part of. */
  readonly note = (stack: string): void => {
    const [sync = ''] = stack.split(/\n *at async /);
    const frames = [...sync.matchAll(/\(?(file:[^()\s]+):\d+:\d+\)?$/gm)].map(([, url = '']) => url);
    const [callee, caller] = new Set(frames.filter(isOfStore).map(nameOf));
    if (callee === undefined || caller === undefined) return;
    const callees = this.#callees.get(caller) ?? new Set();
    if (callees.has(callee)) return;
    if (this.#reaches(callee, caller)) this.backUp.add(`${caller} → ${callee}`);
    else this.#callees.set(caller, callees.add(callee));
  };

  #reaches(from: string, to: string): boolean {
    return from === to || [...(this.#callees.get(from) ?? [])].some((next) => this.#reaches(next, to));
  }
}

function nameOf(url: string): string {
  return url.slice(PACKAGES.length);
}

/** Whether a file is of a store's packages, or of what core has for them. */
function isOfStore(url: string): boolean {
  return url.startsWith(PACKAGES) && !/^core\/src\/(?!backend\/)/.test(nameOf(url));
}

/** Lets `note` see the stack whenever one of the functions begins. */
async function watch(
  session: Session,
  scripts: readonly Profiler.ScriptCoverage[],
  note: Calls['note'],
): Promise<() => Promise<void>> {
  const name = '__noteCall';
  Object.assign(globalThis, { [name]: note });
  await session.post('Debugger.enable');
  for (const { scriptId, functions } of scripts.filter(({ url }) => isOfStore(url))) {
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId });
    const placeOf = (offset: number): Debugger.Location => {
      const lines = scriptSource.slice(0, offset).split('\n');
      return { scriptId, lineNumber: lines.length - 1, columnNumber: (lines.at(-1) as string).length };
    };
    for (const { ranges } of functions) {
      const [{ startOffset, endOffset }] = ranges as [Profiler.CoverageRange];
      // A condition in a constructor before its call of `super` breaks it.
      if (scriptSource.startsWith('constructor', startOffset)) continue;
      const { locations } = await session.post('Debugger.getPossibleBreakpoints', {
        start: placeOf(startOffset),
        end: placeOf(endOffset),
        restrictToFunction: true,
      });
      const [location] = locations;
      // The condition is never true: the function goes on.
      const condition = `void ${name}(new Error().stack)`;
      if (location === undefined) continue;
      // A function that begins with another one has its place.
      await session.post('Debugger.setBreakpoint', { location, condition }).catch(() => {});
    }
  }
  return () => session.post('Debugger.disable');
}

/** Counts the last but one of a few acquires, and watches the last. `prepare` runs before each of them, `begun` after its call. */
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
  let ran: Profiler.ScriptCoverage[] = [];
  const round = async (): Promise<void> => {
    await session.post('Profiler.takePreciseCoverage');
    const acquiring = acquire();
    await begun();
    const lease = await acquiring;
    const { result } = await session.post('Profiler.takePreciseCoverage');
    ran = result
      .filter(({ url }) => url.startsWith(PACKAGES))
      .map((script) => ({
        ...script,
        functions: script.functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0),
      }))
      .filter(({ functions }) => functions.length > 0);
    await lease.release();
  };
  for (let rounds = 0; rounds < ROUNDS; rounds += 1) {
    await prepare();
    await round();
  }
  const counted = ran;
  const calls = new Calls();
  await prepare();
  const unwatch = await watch(session, counted, calls.note);
  await round();
  await unwatch();
  const functions = counted.flatMap(({ url, functions: all }) =>
    all.map(({ functionName }) => `${nameOf(url)} ${functionName || '(anonymous)'}`),
  );
  const filesOfStore = counted.filter(({ url }) => !nameOf(url).startsWith('core/')).length;
  return { name, files: counted.length, filesOfStore, functions, backUp: [...calls.backUp] };
}

/** Starts a server of its own, where the store has one. */
export async function countAcquires(store: string): Promise<AcquireCount[]> {
  await using server = await (STORES[store] as Store).start();
  const { lock, close } = await connect(store, server.url);
  const uncontended = await count('that nobody contends', () => lock.acquire());
  const holder = fork(fileURLToPath(import.meta.url), [store, server.url]);
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

const [, , store, url] = process.argv;
if (import.meta.main && store !== undefined && url !== undefined) await hold(store, url);
