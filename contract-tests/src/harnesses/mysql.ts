import { defineHarness } from '@locks/core/conformance';
import { mysqlBackend, schemaStatements } from '@locks/mysql';
import type { Proxy } from '@locks/test-servers';
import { createPool, type Pool } from 'mysql2';
import { adminQuery } from '../administration/mysql.ts';
import { cutProxies } from './connections/cut-proxies.ts';
import { closedWith } from './connections/shared-clients.ts';
import { at, serverIn } from './connections/server-url.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_MYSQL';

const CONNECTIONS = 24;

let proxy: Proxy | undefined;
/** All backends of a process share one, as those of an application would. */
let pool: Pool | undefined;

/** The server that `MYSQL_URL` names, else a private one. This process speaks through a proxy, its children directly. */
const harness = defineHarness({
  module: import.meta.url,
  name: 'mysql',
  async setup() {
    // The import is here because child processes load no more than they need.
    const { startMariadb, startProxy } = await import('@locks/test-servers');
    const given = process.env['MYSQL_URL'];
    const server = given ? undefined : await startMariadb();
    const direct = given || (server?.url as string);
    const started = await startProxy(serverIn(direct), { protocol: 'raw' });
    proxy = started;
    // One early call opens the connections: dozens of first calls at once would delay their cases.
    for (const statement of schemaStatements()) await adminQuery(direct, statement);
    const opened = openPool(direct).promise();
    await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
    const [row] = await adminQuery(direct, 'SELECT VERSION() AS version');
    const [number = '', ...rest] = String(row?.['version']).split('-');
    const product = rest.includes('MariaDB') ? 'MariaDB' : 'MySQL';
    Object.assign(harness, { server: `${product} ${number}` });
    return {
      env: { [VARIABLE]: direct },
      teardown: async () => {
        proxy = undefined;
        await endPool();
        await started.stop();
        await server?.stop();
      },
    };
  },
  async createBackend() {
    const backend = mysqlBackend({ pool: openPool(process.env[VARIABLE] as string) });
    // A backend never ends a pool that it was given. A child process has no teardown: there the pool ends with its backend.
    return proxy === undefined ? closedWith(backend, endPool) : backend;
  },
  faults: {
    cut: async () => cutProxies(proxy === undefined ? [] : [proxy]),
    wire: {
      servers: () => [serverIn(process.env[VARIABLE] as string)],
      createBackend([address]) {
        const own = createPool({ uri: at(process.env[VARIABLE] as string, address), connectionLimit: 2 });
        return closedWith(mysqlBackend({ pool: own }), () => own.promise().end());
      },
    },
    async evict(resource) {
      const sql = 'DELETE FROM locks_locks WHERE name = ?';
      await adminQuery(process.env[VARIABLE] as string, sql, [Buffer.from(resource)]);
    },
  },
  timing: { slackMs: 500, idleGapMs: 4_200 },
});

export default harness;

function openPool(direct: string): Pool {
  return (pool ??= createPool({ uri: through(direct), connectionLimit: CONNECTIONS }));
}

async function endPool(): Promise<void> {
  const ended = pool;
  pool = undefined;
  await ended?.promise().end();
}

function through(direct: string): string {
  return proxy === undefined ? direct : at(direct, proxy);
}
