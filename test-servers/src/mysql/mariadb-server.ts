import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { findServer } from '../find-server.mjs';
import { unprivileged } from '../postgres/unprivileged.ts';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';

export interface MariadbPlace {
  readonly port: number;
  /** The server's own directory; the data are in `data` below it. */
  readonly dir: string;
  readonly args: readonly string[];
}

/**
 * A private MariaDB on loopback with a database `locks`. `app` may use that database, as an application would; `admin` may
 * do everything. Neither has a password.
 */
export class MariadbServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly dir: string;
  readonly #place: MariadbPlace;
  #process: ServerProcess;

  constructor(place: MariadbPlace, running: ServerProcess) {
    this.#place = place;
    this.port = place.port;
    this.dir = place.dir;
    this.#process = running;
  }

  get url(): string {
    return this.urlOf('app');
  }

  urlOf(user: 'app' | 'admin'): string {
    return `mysql://${user}@${this.host}:${this.port}/locks`;
  }

  /** Of the process that runs now, or ran last. */
  get pid(): number {
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** `kill -9`. What was committed is in its files. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** Kills the server if it still runs and starts it again on the same port, with its data. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await launchMariadb(this.#place, 5_000);
  }

  /** What the server printed last. */
  logTail(lines?: number): string {
    return this.#process.logTail(lines);
  }

  /** Ends it, whatever its state, and deletes its directory. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export class PortTakenError extends Error {}

/** Tries one port, for `patienceMs` if it is taken. */
export async function launchMariadb(place: MariadbPlace, patienceMs: number): Promise<ServerProcess> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const program = unprivileged(findServer('mariadbd'), [...argumentsFor(place), ...place.args]);
    const running = await spawnServer({
      ...program,
      directory: place.dir,
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
    });
    try {
      await waitUntilReady(running, place);
      return running;
    } catch (error) {
      await running.kill();
      if (error instanceof PortTakenError && performance.now() < deadline) continue;
      throw error;
    }
  }
}

function argumentsFor({ port, dir }: MariadbPlace): string[] {
  return [
    '--no-defaults',
    `--datadir=${path.join(dir, 'data')}`,
    `--tmpdir=${dir}`,
    `--socket=${path.join(dir, 's')}`,
    `--pid-file=${pidFile(dir)}`,
    `--init-file=${path.join(dir, 'init.sql')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    '--skip-log-bin',
    '--performance-schema=OFF',
    '--max-connections=400',
    '--innodb-buffer-pool-size=24M',
    '--innodb-log-file-size=8M',
    '--innodb-flush-method=nosync',
    '--innodb-autoextend-increment=1',
    // A killed process loses nothing by it, and no test cuts the power.
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-doublewrite=0',
    '--innodb-fast-shutdown=2',
  ];
}

function pidFile(dir: string): string {
  return path.join(dir, 'pid');
}

async function waitUntilReady(running: ServerProcess, { port, dir }: MariadbPlace): Promise<void> {
  const ready = async () => {
    if (!running.running) throw new GiveUp(startFailure(running, port));
    // Written once the port is its own; whoever answers there before may be somebody else's server.
    if (Number(readFileSync(pidFile(dir), 'utf8')) !== running.pid) return false;
    return await greets(port);
  };
  await waitUntil(ready, {
    what: `MariaDB on port ${port} to be ready`,
    timeoutMs: 30_000,
    everyMs: 10,
  });
}

/** Whether the first packet of a connection is the greeting of a server that lets clients in. */
async function greets(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', timeout: 2_000 });
  socket.once('timeout', () => socket.destroy(new Error('no greeting')));
  try {
    const [packet] = (await once(socket, 'data')) as [Buffer];
    return packet[4] === PROTOCOL_VERSION;
  } finally {
    socket.destroy();
  }
}

const PROTOCOL_VERSION = 10;

function startFailure(running: ServerProcess, port: number): Error {
  const log = running.logTail();
  if (/Address already in use|Can't start server: Bind/i.test(log))
    return new PortTakenError(`Port ${port} is taken.`);
  return new Error(`MariaDB did not start on port ${port}; it printed:\n${log}`);
}
