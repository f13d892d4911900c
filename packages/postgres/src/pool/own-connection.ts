import pg from 'pg';

const CONNECT_MS = 5_000;

/** A connection to where the pool's go, not counted among them: ours to keep and to close. Not yet connected. */
export function ownConnection(pool: pg.Pool, name: string): pg.Client {
  const { options } = pool;
  const config: pg.ClientConfig = {
    ...options,
    application_name: options.application_name ?? name,
    keepAlive: true,
    connectionTimeoutMillis: options.connectionTimeoutMillis || CONNECT_MS,
  };
  // The pool hides it from enumeration.
  config.password = options.password;
  return new pg.Client(config);
}

/** A connection of our own to another address, as past a pooler. Not yet connected. */
export function connectionTo(connectionString: string, name: string): pg.Client {
  return new pg.Client({
    connectionString,
    fallback_application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
  });
}

/** From now on the connection alone does not keep the process alive. */
export function unrefConnection(client: pg.Client): void {
  // Not in the types of pg, but what its pool uses for `allowExitOnIdle`.
  (client as unknown as { unref?(): void }).unref?.();
}

/** Ends a connection at once, whether it answers or not. */
export function endConnection(client: pg.Client): void {
  client.on('error', ignore);
  // With a query under way, or a dead socket, pg destroys the stream; a hung goodbye ends with the socket.
  client.end().catch(ignore);
}

function ignore(): void {
  // It is given up.
}
