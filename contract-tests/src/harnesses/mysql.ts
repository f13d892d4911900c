import { mysqlBackend, schemaStatements } from '@locks/mysql';
import { createPool, type Pool } from 'mysql2';
import { adminQuery } from '../administration/mysql.ts';
import { at, serverIn } from './connections/server-url.ts';
import { servedHarness } from './connections/served-harness.ts';
import { closedWith } from './connections/shared-clients.ts';

const CONNECTIONS = 24;

/** All backends of a process share one, as those of an application would. */
let pool: Pool | undefined;

/** The server that `MYSQL_URL` names, else a private one. */
export default servedHarness<string>({
  module: import.meta.url,
  name: 'mysql',
  variable: 'LOCKS_CONFORMANCE_MYSQL',
  async start() {
    const { startMariadb, startProxy } = await import('@locks/test-servers');
    const given = process.env['MYSQL_URL'];
    const server = given ? undefined : await startMariadb();
    const direct = given || (server?.url as string);
    const proxy = await startProxy(serverIn(direct), { protocol: 'raw' });
    return {
      ...{ direct, proxied: at(direct, proxy), proxies: [proxy] },
      async stop() {
        await proxy.stop();
        await server?.stop();
      },
    };
  },
  async prepare({ direct, proxied = direct }) {
    // One early call opens the connections: dozens of first calls at once would delay their cases.
    for (const statement of schemaStatements()) await adminQuery(direct, statement);
    const opened = openPool(proxied).promise();
    await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
    const [row] = await adminQuery(direct, 'SELECT VERSION() AS version');
    const [number = '', ...rest] = String(row?.['version']).split('-');
    return `${rest.includes('MariaDB') ? 'MariaDB' : 'MySQL'} ${number}`;
  },
  hasPrefix: true,
  async createBackend(uri, served, tablePrefix) {
    const pool = openPool(uri);
    const backend = mysqlBackend(pool, tablePrefix === undefined ? {} : { tablePrefix });
    // A backend never ends a pool that it was given. A child process has no teardown: there the pool ends with its backend.
    return served === undefined ? closedWith(backend, endPool) : backend;
  },
  end: endPool,
  faults: (direct) => ({
    wire: {
      servers: () => [serverIn(direct())],
      createBackend([address]) {
        const own = createPool({ uri: at(direct(), address), connectionLimit: 2 });
        return closedWith(mysqlBackend(own), () => own.promise().end());
      },
    },
    async onOwnClient() {
      const own = createPool({ uri: direct(), connectionLimit: 2 });
      return { backend: mysqlBackend(own), closeClient: () => own.promise().end() };
    },
    async evict(resource) {
      const sql = 'DELETE FROM locks_locks WHERE name = ?';
      await adminQuery(direct(), sql, [Buffer.from(resource)]);
    },
    async corrupt(resource) {
      const sql =
        'REPLACE INTO locks_locks (name, version, token, waiting, free_at, at, state) VALUES (?, 1, 1, 0, 9000000000000000, 1, ?)';
      await adminQuery(direct(), sql, [Buffer.from(resource), Buffer.from('of another program')]);
    },
  }),
  timing: { slackMs: 500, idleGapMs: 4_200 },
});

function openPool(uri: string): Pool {
  return (pool ??= createPool({ uri, connectionLimit: CONNECTIONS }));
}

async function endPool(): Promise<void> {
  const ended = pool;
  pool = undefined;
  await ended?.promise().end();
}
