import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer, lookForServer } from '../find-server.mjs';
import { makeDirectory, ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { giveAway, unprivileged } from '../unprivileged.ts';

export interface MariadbOptions {
  /** More arguments of `mariadbd`, as `['--wait-timeout=1']`. */
  readonly args?: readonly string[];
  /** @defaultValue a free port */
  readonly port?: number;
}

/** Starts a MariaDB, or a MySQL where that alone is found (`--server mysql-9.7`), with a fresh data directory, and in it an empty database `locks`, on a free port of 127.0.0.1. */
export async function startMariadb({ args = [], port }: MariadbOptions = {}): Promise<MariadbServer> {
  return await startServer({ label: 'mariadb', port }, (location) => new MariadbServer(location, args));
}

/**
 * A private MariaDB on loopback with a database `locks`. `app` may use that database, as an application would; `admin` may
 * do everything. Neither has a password.
 */
export class MariadbServer extends ManagedServer {
  protected readonly title = 'MariaDB';
  protected override readonly data = ['data'];
  readonly #args: readonly string[];

  constructor(location: ServerLocation, args: readonly string[]) {
    super(location);
    this.#args = args;
  }

  get url(): string {
    return this.urlOf('app');
  }

  urlOf(user: 'app' | 'admin'): string {
    return `mysql://${user}@${this.host}:${this.port}/locks`;
  }

  protected override async prepare(): Promise<void> {
    await copyTemplate(this.dir);
    await writeFile(path.join(this.dir, 'init.sql'), INITIAL_STATEMENTS);
    await giveAway(this.dir);
  }

  protected override program() {
    const server = isMysql() ? 'mysqld' : 'mariadbd';
    const program = unprivileged(findServer(server), [...argumentsFor(this), ...this.#args]);
    return { ...program, env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' } };
  }

  protected override async isReady(): Promise<boolean> {
    // The server writes its pid once the port is its own.
    return Number(readFileSync(pidFile(this.dir), 'utf8')) === this.pid && (await greets(this.port));
  }
}

function argumentsFor({ port, dir }: ServerLocation): string[] {
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
    ...(isMysql() ? MYSQL_ARGUMENTS : ['--innodb-log-file-size=8M']),
    '--innodb-flush-method=nosync',
    '--innodb-autoextend-increment=1',
    // A killed process loses nothing by it, and no test cuts the power.
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-doublewrite=0',
    '--innodb-fast-shutdown=2',
  ];
}

/** On Debian `mysqld` is another name of `mariadbd`. */
function isMysql(): boolean {
  return lookForServer('mariadbd') === undefined && lookForServer('mysqld') !== undefined;
}

/** Its second protocol has a port of its own, which every server of this machine would want. */
const MYSQL_ARGUMENTS = ['--innodb-redo-log-capacity=16M', '--mysqlx=OFF'];

function pidFile(dir: string): string {
  return path.join(dir, 'pid');
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

/** `admin` may do everything and is not bound by `read_only`; `app` is like an application. */
const INITIAL_STATEMENTS = `CREATE DATABASE IF NOT EXISTS locks;
CREATE USER IF NOT EXISTS admin@'%';
GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS app@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO app@'%';
`;

let template: Promise<string> | undefined;

/** Making a data directory takes most of a start: it is made once in a process, and then copied. */
async function copyTemplate(dir: string): Promise<void> {
  template ??= makeTemplate();
  const from = await template.catch((error: unknown) => {
    template = undefined;
    throw error;
  });
  await promisify(execFile)('cp', ['-R', from, path.join(dir, 'data')]);
}

async function makeTemplate(): Promise<string> {
  const dir = await makeDirectory('mariadb-template');
  await giveAway(dir);
  const data = path.join(dir, 'data');
  const { command, args } = isMysql() ? mysqlTemplate(data) : mariadbTemplate(dir, data);
  await promisify(execFile)(command, args, { cwd: dir });
  return data;
}

function mysqlTemplate(data: string) {
  return unprivileged(findServer('mysqld'), [
    '--no-defaults',
    '--initialize-insecure',
    `--datadir=${data}`,
    '--innodb-redo-log-capacity=16M',
    '--innodb-autoextend-increment=1',
  ]);
}

function mariadbTemplate(dir: string, data: string) {
  return unprivileged(findServer('mariadb-install-db'), [
    '--no-defaults',
    `--datadir=${data}`,
    // A server that starts removes temporary tables it finds, those of its neighbours too.
    `--tmpdir=${dir}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--skip-name-resolve',
    // Small files are quickly copied.
    '--innodb-log-file-size=8M',
    '--innodb-autoextend-increment=1',
  ]);
}
