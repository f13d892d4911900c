import { defineHarness } from '@locks/core/conformance';
import { mysqlBackend, schemaStatements } from '@locks/mysql';
import type { Proxy } from '@locks/test-servers';
import { createPool, type Pool } from 'mysql2';
import { adminQuery } from '../mysql/admin.ts';
import { closedWith } from '../shared-clients.ts';

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
    // Only here: child processes load no more than they need.
    const { startMariadb, startProxy } = await import('@locks/test-servers');
    const given = process.env['MYSQL_URL'];
    const server = given ? undefined : await startMariadb();
    const direct = given || (server?.url as string);
    const { hostname, port } = new URL(direct);
    const started = await startProxy({ host: hostname, port: Number(port || 3306) }, { protocol: 'raw' });
    proxy = started;
    // Dozens of first calls at once would hold up the cases that they belong to.
    for (const statement of schemaStatements()) await adminQuery(direct, statement);
    const opened = openPool(direct).promise();
    await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
    const [row] = await adminQuery(direct, 'SELECT VERSION() AS version');
    Object.assign(harness, { server: `MariaDB ${String(row?.['version']).replace(/-.*/, '')}` });
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
    // A backend never ends a pool that it was given. In a child process nobody tears down: there it ends with its backend.
    return proxy === undefined ? closedWith(backend, endPool) : backend;
  },
  faults: {
    async cut() {
      proxy?.refuse();
      proxy?.cut();
      return async () => {
        await proxy?.heal();
      };
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
  if (proxy === undefined) return direct;
  const url = new URL(direct);
  url.host = `${proxy.host}:${proxy.port}`;
  return url.href;
}
