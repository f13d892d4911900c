import { randomBytes } from 'node:crypto';
import { type Proxy, startPgbouncer, startPostgres, startProxy } from '@locks/test-servers';
import { withAdmin } from '../../administration/postgres.ts';
import { at, serverIn } from '../connections/server-url.ts';

/** The addresses of a deployment, which child processes get as JSON. */
export interface PostgresAddress {
  /** The server itself. */
  readonly direct: string;
  /** The URL for clients: that of the server, or of a pooler before it. */
  readonly url: string;
  readonly schema: string;
}

export interface PostgresDeployment {
  readonly direct: PostgresAddress;
  /** The same URLs behind the proxies. */
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
    url = stack.use(await startPgbouncer(serverIn(direct))).url;
  }
  const toServer = stack.use(await startProxy(serverIn(direct), { protocol: 'raw' }));
  const toClients = pgbouncer ? stack.use(await startProxy(serverIn(url), { protocol: 'raw' })) : toServer;
  const proxied = {
    direct: at(direct, toServer),
    url: at(url, toClients),
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
