import { Buffer } from 'node:buffer';
import { createRequire } from 'node:module';
import { compileFunction } from 'node:vm';
import type * as core from '@locks/core';
import type * as cohort from '@locks/cohort';
import type * as renewal from '@locks/core/renewal-thread';
import type * as transfer from '@locks/core/transfer';
import type { serveRenewals } from '../../../packages/core/src/renewal-thread/serve-renewals.ts';
import type * as etcd from '@locks/etcd';
import type * as quorum from '@locks/quorum';
import type * as mysql from '@locks/mysql';
import type * as record from '@locks/record-protocol';
import type * as postgres from '@locks/postgres';
import type * as redis from '@locks/redis-protocol';
import type * as rules from '@locks/core/rules';
import type * as zookeeper from '@locks/zookeeper';
import type * as sqlite from '@locks/sqlite';
import { EmbeddedPostgres } from '../postgres/embedded-postgres.ts';
import { LuaScripts } from '../redis/lua-scripts.ts';
import type { SqliteCode } from '../sqlite/sqlite-code.ts';
import type { BackendKind } from '../workload/plan.ts';
import { bundleSources, PACKAGES } from './bundle-sources.ts';
import { globalsOf, modulesOf } from './process-globals.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SourceChange } from './source-change.ts';

/** Core, as one simulated process has loaded them. */
export interface LoadedLocks extends SqliteCode {
  readonly createLocks: typeof core.createLocks;
  readonly cohortBackend: typeof cohort.cohortBackend;
  readonly quorumBackend: typeof quorum.quorumBackend;
  readonly transfer: typeof transfer.transfer;
  readonly adopt: typeof transfer.adopt;
  readonly renewalThread: typeof renewal.renewalThread;
  readonly serveRenewals: typeof serveRenewals;
  readonly etcdBackend: typeof etcd.etcdBackend;
  readonly mysqlBackend: typeof mysql.mysqlBackend;
  readonly postgresLeaseBackend: typeof postgres.postgresLeaseBackend;
  readonly schemaStatements: typeof postgres.schemaStatements;
  readonly createRecordBackend: typeof record.createRecordBackend;
  readonly createRedisBackend: typeof redis.createRedisBackend;
  readonly sqliteBackend: typeof sqlite.sqliteBackend;
  readonly LockRules: typeof rules.LockRules;
  readonly zookeeperBackend: typeof zookeeper.zookeeperBackend;
  readonly freshAcquisitionId: () => string;
  /** Of records and the rows of MySQL; it keeps random bytes too. */
  readonly freshVersion?: () => number;
  /** The scripts of Redis, by the names of their files in camel case. */
  readonly scripts?: Readonly<Record<string, { readonly sha1: string; readonly source: string }>>;
}

const CORE = `export { createLocks } from '@locks/core'; export { LockRules } from '@locks/core/rules';
  export { cohortBackend } from '@locks/cohort';
  export { adopt, transfer } from '@locks/core/transfer';
  export { renewalThread } from '@locks/core/renewal-thread';
  export { serveRenewals } from '${PACKAGES}/core/src/renewal-thread/serve-renewals.ts';
  export { freshAcquisitionId } from '${PACKAGES}/core/src/acquire/acquisition-id.ts';`;
/** A process loads what its backend needs: the less code, the more runs in a second. */
const ENTRIES: Readonly<Record<BackendKind, string>> = {
  rules: CORE,
  redis: `${CORE} export { createRedisBackend } from '@locks/redis-protocol';
    export { scripts } from '${PACKAGES}/redis-protocol/src/generated/scripts.ts';`,
  mysql: `${CORE} export { mysqlBackend } from '@locks/mysql';
    export { freshVersion } from '${PACKAGES}/record-protocol/src/fresh-version.ts';`,
  record: `${CORE} export { createRecordBackend } from '@locks/record-protocol';
    export { freshVersion } from '${PACKAGES}/record-protocol/src/fresh-version.ts';`,
  quorum: `${CORE} export { quorumBackend } from '@locks/quorum';`,
  etcd: `${CORE} export { etcdBackend } from '@locks/etcd';`,
  zookeeper: `${CORE} export { zookeeperBackend } from '@locks/zookeeper';`,
  sqlite: `${CORE} export { sqliteBackend } from '@locks/sqlite';
    export { loadSqlite } from '${PACKAGES}/sqlite/src/load-sqlite.ts';
    export { machineClock } from '${PACKAGES}/sqlite/src/machine-clock.ts';
    export { openLockFile } from '${PACKAGES}/sqlite/src/lock-file.ts';`,
  postgres: `${CORE} export { postgresLeaseBackend, schemaStatements } from '@locks/postgres';`,
};
const PARAMETERS = [
  'module',
  'require',
  'globalThis',
  'process',
  'performance',
  'Date',
  'Math',
  'FinalizationRegistry',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'queueMicrotask',
  'crypto',
];

/** Code that was evaluated, and the process for which it runs. */
interface Evaluated {
  process: SimulatedProcess;
  readonly loaded: LoadedLocks;
  /** Its `globalThis`, where copies of core share what is one for a process. */
  readonly shared: { [name: symbol]: unknown };
}

/** So many acquisition ids, and versions of rows, are made of random bytes at a time. */
const IDS_AT_ONCE = 256;
const VERSIONS_AT_ONCE = 128;

/**
 * The sources of core and of the Redis protocol, compiled once; each process of a run has them evaluated for itself. What a run
 * has evaluated serves the processes of the next one, since V8 runs code faster that it has run before.
 */
export class LockCode {
  readonly #evaluate: (...values: unknown[]) => void;
  #server: LoadedLocks | undefined;
  readonly #idle: Evaluated[] = [];
  #used: Evaluated[] = [];

  /** The names of the scripts of Redis; set by the first run. */
  scriptNames: ReadonlyMap<string, string> | undefined;
  /** What runs the scripts of a simulated Redis. */
  readonly lua: LuaScripts | undefined;

  /** What runs the SQL of a simulated PostgreSQL. */
  readonly postgres: EmbeddedPostgres | undefined;
  #schema: readonly string[] | undefined;

  private constructor(text: string, lua: LuaScripts | undefined, postgres: EmbeddedPostgres | undefined) {
    this.lua = lua;
    this.postgres = postgres;
    this.#evaluate = compileFunction(text, PARAMETERS, { filename: 'simulated-process.cjs' }) as (
      ...values: unknown[]
    ) => void;
  }

  /** @param changes - errors that are planted; none: the sources as they are */
  static async load(backend: BackendKind, changes: readonly SourceChange[] = []): Promise<LockCode> {
    const entry = ENTRIES[backend];
    const unchanged = changes.length === 0 ? bundles.get(entry) : undefined;
    const text = unchanged ?? (await bundleSources(entry, changes));
    if (changes.length === 0) bundles.set(entry, text);
    const lua = backend === 'redis' ? await LuaScripts.load() : undefined;
    const embedded = backend === 'postgres' ? await EmbeddedPostgres.load() : undefined;
    return new LockCode(text, lua, embedded);
  }

  /** The code as a store has loaded it, once for all runs: it has no state and reads no time. */
  serverCode(process: () => SimulatedProcess): LoadedLocks {
    return (this.#server ??= this.#load(process()).loaded);
  }

  /** The statements that make the tables of PostgreSQL. */
  schemaOf(server: LoadedLocks): readonly string[] {
    return (this.#schema ??= server.schemaStatements());
  }

  /** The code with the clocks, timers and random numbers of a process, until {@link runIsOver}. */
  loadInto(process: SimulatedProcess): LoadedLocks {
    const evaluated = this.#idle.pop() ?? this.#load(process);
    evaluated.process = process;
    this.#used.push(evaluated);
    return evaluated.loaded;
  }

  /** No code of the processes runs any more. */
  runIsOver(): void {
    // The first process of each run gets the same code.
    for (const evaluated of this.#used.toReversed()) {
      forget(evaluated);
      this.#idle.push(evaluated);
    }
    this.#used = [];
  }

  #load(process: SimulatedProcess): Evaluated {
    const module = { exports: {} };
    let evaluated = undefined as Evaluated | undefined;
    const current = (): SimulatedProcess => evaluated?.process ?? process;
    const globals = globalsOf(current);
    const modules = modulesOf(current);
    const require = (name: string): unknown => modules[name] ?? nodeRequire(name);
    const shared = { ...globals };
    const values: Readonly<Record<string, unknown>> = { ...globals, module, require, globalThis: shared };
    this.#evaluate(...PARAMETERS.map((name) => values[name]));
    const loaded = module.exports as LoadedLocks;
    return (evaluated = { process, loaded, shared });
  }
}

/** Makes evaluated code as good as new: it keeps random bytes for ids, and what a run that broke off left open. */
function forget(evaluated: Evaluated): void {
  const { loaded, shared } = evaluated;
  let hasDrawn: boolean;
  const randomBytes = (size: number): Buffer => {
    hasDrawn = true;
    return Buffer.alloc(size);
  };
  evaluated.process = { randomBytes } as unknown as SimulatedProcess;
  const useUp = (makeOne: () => unknown, atOnce: number): void => {
    hasDrawn = false;
    while (!hasDrawn) makeOne();
    for (let made = 1; made < atOnce; made += 1) makeOne();
  };
  useUp(loaded.freshAcquisitionId, IDS_AT_ONCE);
  if (loaded.freshVersion !== undefined) useUp(loaded.freshVersion, VERSIONS_AT_ONCE);
  for (const symbol of Object.getOwnPropertySymbols(shared)) {
    const kept = shared[symbol];
    if (kept instanceof Set) kept.clear();
    else for (const name of Object.keys(kept as object)) delete (kept as Record<string, unknown>)[name];
  }
}

/** Bundles without changes, by what they export. */
const bundles = new Map<string, string>();

const nodeRequire = createRequire(import.meta.url);
