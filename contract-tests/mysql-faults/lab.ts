import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { mysqlBackend } from '@locks/mysql';
import { type MariadbOptions, type MariadbServer, startMariadb } from '@locks/test-servers';
import { createPool, type PoolOptions } from 'mysql2';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

export interface LabOptions extends LockOptions {
  readonly pool?: PoolOptions;
}

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(options?: MariadbOptions): Promise<MariadbServer> {
    return this.use(await startMariadb(options));
  }

  /** Locks with a pool of their own, as one process has them; the tables are made. */
  async locks(at: Address, { pool: poolOptions, ...options }: LabOptions = {}): Promise<LockManager> {
    const pool = createPool({ host: at.host, port: at.port, user: 'app', database: 'locks', ...poolOptions });
    this.defer(() => endPool(pool));
    const locks = this.use(createLocks(mysqlBackend(pool), options));
    await locks.lock('warm').run(() => undefined);
    return locks;
  }

  /** An administrator's connection. */
  async admin(server: MariadbServer): Promise<Connection> {
    const connection = await createConnection(server.urlOf('admin'));
    connection.on('error', () => undefined);
    this.defer(() => connection.destroy());
    return connection;
  }
}

/** Also when some of its connections answer no more. */
async function endPool(pool: ReturnType<typeof createPool>): Promise<void> {
  const ended = pool.promise().end();
  ended.catch(() => undefined);
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
}

export async function rows(connection: Connection, sql: string): Promise<RowDataPacket[]> {
  const [found] = await connection.query<RowDataPacket[]>(sql);
  return found;
}

/** Ends every connection of the application. */
export async function killAll(admin: Connection): Promise<number> {
  const found = await rows(admin, "SELECT id FROM information_schema.processlist WHERE user = 'app'");
  for (const { id } of found) await admin.query(`KILL CONNECTION ${String(id)}`).catch(() => undefined);
  return found.length;
}
