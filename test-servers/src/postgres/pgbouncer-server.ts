import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Address } from '@locks/core/conformance/proxy';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { giveAway, unprivileged } from '../unprivileged.ts';
import { simpleQuery } from './simple-query.ts';

export interface PgbouncerOptions {
  /** @defaultValue 'transaction' */
  readonly poolMode?: 'session' | 'transaction' | 'statement';
  /** Connections to the server, for each database and user. @defaultValue 10 */
  readonly poolSize?: number;
}

/** Starts PgBouncer in front of a server, by default so that a connection is lent for one transaction only. */
export async function startPgbouncer(
  server: Address,
  options: PgbouncerOptions = {},
): Promise<PgbouncerServer> {
  return await startServer(
    { label: 'pgbouncer' },
    (location) => new PgbouncerServer(location, server, options),
  );
}

/** A private PgBouncer on loopback. */
export class PgbouncerServer extends ManagedServer {
  protected readonly title = 'PgBouncer';
  readonly #configuration: string;

  constructor(location: ServerLocation, server: Address, options: PgbouncerOptions) {
    super(location);
    this.#configuration = configuration(server, location.port, options);
  }

  get url(): string {
    return `postgres://postgres@${this.host}:${this.port}/postgres`;
  }

  get #file(): string {
    return path.join(this.dir, 'pgbouncer.ini');
  }

  protected override async prepare(): Promise<void> {
    await writeFile(this.#file, this.#configuration);
    await giveAway(this.dir);
  }

  protected override program() {
    return unprivileged(findServer('pgbouncer'), [this.#file]);
  }

  protected override async isReady(): Promise<boolean> {
    await simpleQuery(this, 'SELECT 1', { timeoutMs: 2_000 });
    return true;
  }
}

function configuration(
  { host, port: serverPort }: Address,
  port: number,
  { poolMode = 'transaction', poolSize = 10 }: PgbouncerOptions,
): string {
  return `[databases]
* = host=${host} port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${poolMode}
default_pool_size = ${poolSize}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
server_login_retry = 0.2
log_connections = 0
log_disconnections = 0
`;
}
