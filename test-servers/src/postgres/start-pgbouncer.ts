import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';
import { type PostgresAddress, simpleQuery } from './simple-query.ts';
import { giveAway, unprivileged } from './unprivileged.ts';

export interface PgbouncerOptions {
  /** @defaultValue 'transaction' */
  readonly poolMode?: 'session' | 'transaction' | 'statement';
  /** Connections to the server, for each database and user. @defaultValue 10 */
  readonly poolSize?: number;
}

/** A private PgBouncer on loopback. */
export class PgbouncerServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly #dir: string;
  readonly #process: ServerProcess;

  constructor(port: number, dir: string, running: ServerProcess) {
    this.port = port;
    this.#dir = dir;
    this.#process = running;
  }

  get url(): string {
    return `postgres://postgres@${this.host}:${this.port}/postgres`;
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  async kill(): Promise<void> {
    await this.#process.kill();
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts PgBouncer in front of a server, by default so that a connection is lent for one transaction only. */
export async function startPgbouncer(
  server: PostgresAddress,
  options: PgbouncerOptions = {},
): Promise<PgbouncerServer> {
  const dir = await (await guardian()).makeDirectory('pgbouncer');
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const file = path.join(dir, 'pgbouncer.ini');
    await writeFile(file, configuration(server, port, options));
    await giveAway(dir);
    const running = await spawnServer({ ...unprivileged(findServer('pgbouncer'), [file]), directory: dir });
    try {
      await waitUntilReady(running, port);
      return new PgbouncerServer(port, dir, running);
    } catch (error) {
      await running.kill();
      if (tries < 10 && /in use/i.test(running.logTail())) continue;
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }
}

function configuration(
  { host, port: serverPort }: PostgresAddress,
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

async function waitUntilReady(running: ServerProcess, port: number): Promise<void> {
  const ready = async () => {
    if (!running.running)
      throw new GiveUp(
        new Error(`PgBouncer did not start on port ${port}; it printed:\n${running.logTail()}`),
      );
    await simpleQuery({ host: '127.0.0.1', port }, 'SELECT 1', { timeoutMs: 2_000 });
    return true;
  };
  await waitUntil(ready, { what: `PgBouncer on port ${port} to be ready`, timeoutMs: 15_000 });
}
