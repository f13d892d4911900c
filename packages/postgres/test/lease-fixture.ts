import { randomBytes } from 'node:crypto';
import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import pg from 'pg';
import {
  postgresLeaseBackend,
  type PostgresLeaseCapabilities,
  type PostgresLeaseOptions,
} from '../src/index.ts';

interface FixtureOptions extends PostgresLeaseOptions {
  readonly pool?: pg.Pool;
  readonly url?: string;
}

/** A server for one test file. Disposing it closes everything that the tests opened. */
export class LeaseFixture implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly #stack = new AsyncDisposableStack();

  private constructor(server: PostgresServer) {
    this.server = server;
  }

  static async start(settings: Readonly<Record<string, string | number>> = {}): Promise<LeaseFixture> {
    return new LeaseFixture(await startPostgres({ settings }));
  }

  /** A schema that no other test uses. */
  schema(): string {
    return `test_${randomBytes(5).toString('hex')}`;
  }

  pool(config: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.server.url, allowExitOnIdle: true, ...config });
    this.#stack.defer(() => (pool.ended ? undefined : pool.end()));
    return pool;
  }

  backend({ pool, url, ...options }: FixtureOptions = {}): LockBackend<PostgresLeaseCapabilities> {
    const backend = postgresLeaseBackend(url ?? pool ?? this.pool(), options);
    this.#stack.defer(() => backend.close());
    return backend;
  }

  locks(options: FixtureOptions = {}, lockOptions: LockOptions = {}): LockManager {
    const manager = createLocks(this.backend(options), lockOptions);
    this.#stack.defer(() => manager.close());
    return manager;
  }

  /** Makes the schema, as a deployment does. */
  async prepare(options: FixtureOptions): Promise<void> {
    await using locks = createLocks(this.backend({ url: this.server.url, ...options }));
    await locks.prepare();
  }

  /** A connection outside of every pool. */
  async session(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.server.url });
    client.on('error', () => undefined);
    await client.connect();
    this.#stack.defer(() => client.end());
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    await this.server.stop();
  }
}

/** Calls one function of the schema in a session. */
export async function call(
  session: pg.Client,
  schema: string,
  name: string,
  values: unknown[],
): Promise<string> {
  const parameters = values.map((_, at) => `$${at + 1}`).join(', ');
  const { rows } = await session.query<{ reply: string }>(
    `SELECT ${schema}.${name}(${parameters}) AS reply`,
    values,
  );
  return rows[0]?.reply as string;
}

/** The arguments of `acquire` for an exclusive lock, which queues when it is contended. */
export function acquireValues(
  name: string,
  id: string,
  client: string,
  { ttlMs = 20_000, enqueues = true, maxWaiters = -1 } = {},
): unknown[] {
  return [Buffer.from(name), id, 0, 1, null, ttlMs, id, client, false, enqueues, maxWaiters];
}
