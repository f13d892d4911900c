import { randomBytes } from 'node:crypto';
import { type Proxy, startPgbouncer, startPostgres, startProxy } from '@locks/test-servers';
import { withAdmin } from './admin.ts';

/** What child processes need to know of a deployment, as JSON. */
export interface PostgresAddress {
  /** The server itself. */
  readonly direct: string;
  /** What clients speak to: the server, or a pooler before it. */
  readonly url: string;
  readonly schema: string;
}

export interface PostgresDeployment {
  readonly direct: PostgresAddress;
  /** The same behind the proxies. */
  readonly proxied: PostgresAddress;
  readonly proxies: readonly Proxy[];
  stop(): Promise<void>;
}

/** The server that `POSTGRES_URL` names, else a private one; behind PgBouncer in transaction mode where asked for. */
export async function deployPostgres({ pgbouncer = false } = {}): Promise<PostgresDeployment> {
  const given = process.env['POSTGRES_URL'];
  await using stack = new AsyncDisposableStack();
  const server = given ? undefined : stack.use(await startPostgres());
  const direct = given || (server?.url as string);
  const schema = `locks_conformance_${randomBytes(4).toString('hex')}`;
  if (given) {
    stack.defer(async () => {
      await withAdmin(direct, (admin) => admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`));
    });
  }
  let url = direct;
  if (pgbouncer) {
    const { hostname, port } = new URL(direct);
    url = stack.use(await startPgbouncer({ host: hostname, port: Number(port || 5432) })).url;
  }
  const toServer = stack.use(await proxyTo(direct));
  const toClients = pgbouncer ? stack.use(await proxyTo(url)) : toServer;
  const proxied = {
    direct: through(direct, toServer),
    url: through(url, toClients),
    schema,
  };
  const all = stack.move();
  return {
    direct: { direct, url, schema },
    proxied,
    proxies: [...new Set([toServer, toClients])],
    stop: () => all.disposeAsync(),
  };
}

async function proxyTo(url: string): Promise<Proxy> {
  const { hostname, port } = new URL(url);
  return await startProxy({ host: hostname, port: Number(port || 5432) }, { protocol: 'raw' });
}

function through(url: string, proxy: Proxy): string {
  const proxied = new URL(url);
  proxied.host = `${proxy.host}:${proxy.port}`;
  return proxied.href;
}
