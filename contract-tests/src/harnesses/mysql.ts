import { defineHarness, delegate } from '@locks/core/conformance';
import { mysqlBackend } from '@locks/mysql';
import type { Proxy } from '@locks/test-servers';
import { createPool, type Pool } from 'mysql2';
import { adminQuery } from '../mysql/admin.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_MYSQL';

let proxy: Proxy | undefined;
let pool: Pool | undefined;
let users = 0;

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
    const [row] = await adminQuery(direct, 'SELECT VERSION() AS version');
    Object.assign(harness, { server: `MariaDB ${String(row?.['version']).replace(/-.*/, '')}` });
    return {
      env: { [VARIABLE]: direct },
      teardown: async () => {
        proxy = undefined;
        await started.stop();
        await server?.stop();
      },
    };
  },
  async createBackend() {
    // One pool for all, as in an application. A backend never ends the pool that it was given: the last one's user does.
    pool ??= createPool({ uri: through(process.env[VARIABLE] as string), connectionLimit: 24 });
    const shared = pool;
    const backend = mysqlBackend({ pool: shared });
    users += 1;
    let closed = false;
    return delegate(backend, {
      close: async () => {
        await backend.close();
        if (closed) return;
        closed = true;
        users -= 1;
        if (users > 0 || pool !== shared) return;
        pool = undefined;
        await shared.promise().end();
      },
    });
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

function through(direct: string): string {
  if (proxy === undefined) return direct;
  const url = new URL(direct);
  url.host = `${proxy.host}:${proxy.port}`;
  return url.href;
}
