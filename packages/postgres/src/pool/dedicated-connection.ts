import pg from 'pg';

const CONNECT_MS = 5_000;

/** A connection with the settings of a pool, but outside of the pool: the caller connects and closes it. */
export function dedicatedConnection(pool: pg.Pool, name: string): pg.Client {
  const { options } = pool;
  const config: pg.ClientConfig = {
    ...options,
    application_name: options.application_name ?? name,
    keepAlive: true,
    connectionTimeoutMillis: options.connectionTimeoutMillis || CONNECT_MS,
  };
  // A spread does not copy the password: the pool makes it not enumerable.
  config.password = options.password;
  return new pg.Client(config);
}

/** A connection to another address than the pool's, for example past a pooler: the caller connects and closes it. */
export function connectionTo(connectionString: string, name: string): pg.Client {
  return new pg.Client({
    connectionString,
    fallback_application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
  });
}

/** Lets the process end while this connection is open. */
export function unrefConnection(client: pg.Client): void {
  // The types of pg do not have this method. pg's own pool uses it for `allowExitOnIdle`.
  (client as unknown as { unref?(): void }).unref?.();
}

/** Ends a connection at once, whether the server answers or not. */
export function endConnection(client: pg.Client): void {
  client.on('error', ignore);
  // pg destroys the socket if a query is under way or the socket is dead; otherwise it waits for the server to close it.
  client.end().catch(ignore);
}

function ignore(): void {
  // Nobody uses this connection any more.
}
