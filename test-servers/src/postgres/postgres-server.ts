import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { type Guardian, guardian } from '../guardian.ts';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { giveAway, unprivileged } from '../unprivileged.ts';
import { waitUntil } from '../wait-until.ts';
import { PostgresReplyError, type QueryOptions, type QueryRow, simpleQuery } from './simple-query.ts';

export interface PostgresOptions {
  /** Settings of the server, as `{ statement_timeout: '1s' }`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** @defaultValue a free port */
  readonly port?: number;
}

/** Starts a PostgreSQL with a fresh data directory on a free port of 127.0.0.1. */
export async function startPostgres({ settings = {}, port }: PostgresOptions = {}): Promise<PostgresServer> {
  return await startServer({ label: 'postgres', port }, (location) => new PostgresServer(location, settings));
}

/** A private PostgreSQL on loopback. Everybody is let in without a password; the superuser is `postgres`. */
export class PostgresServer extends ManagedServer {
  protected readonly title = 'PostgreSQL';
  protected override readonly data = ['data'];
  readonly #settings: Readonly<Record<string, string | number>>;
  /** Processes of a paused server; the guardian kills each of them if this process ends meanwhile. */
  #frozen: number[] = [];
  #guardian: Guardian | undefined;

  constructor(location: ServerLocation, settings: Readonly<Record<string, string | number>>) {
    super(location);
    this.#settings = settings;
  }

  get url(): string {
    return this.urlOf('postgres');
  }

  urlOf(database: string): string {
    return `postgres://postgres@${this.host}:${this.port}/${encodeURIComponent(database)}`;
  }

  /** Runs SQL as the superuser, on a connection of its own; gives the rows as texts. */
  async query(sql: string, options?: QueryOptions): Promise<QueryRow[]> {
    return await simpleQuery(this, sql, options);
  }

  /** Ends every connection but the asking one, of which `which` (a condition on pg_stat_activity) holds. */
  async terminate(which = 'true'): Promise<number> {
    const rows = await this.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND (${which})`,
    );
    return rows.length;
  }

  /** SIGSTOP of all its processes: connections stay open, nothing is answered. */
  override async pause(): Promise<void> {
    // The postmaster is stopped first: from then on it starts no new processes.
    await super.pause();
    this.#guardian = await guardian();
    this.#frozen = childrenOf(this.pid);
    for (const pid of this.#frozen) {
      // Each process leads a group of its own, and a stopped one would not notice that the postmaster is gone.
      await this.#guardian.guard(pid);
      signal(pid, 'SIGSTOP');
    }
    await waitUntil(() => this.#frozen.every((pid) => 'TZ?'.includes(stateOf(pid))), {
      what: `the processes of PostgreSQL on port ${this.port} to stop`,
    });
  }

  override resume(): void {
    for (const pid of this.#frozen) signal(pid, 'SIGCONT');
    this.#releaseFrozen();
    super.resume();
  }

  /** `kill -9` of all its processes, frozen or not. What was committed is in its files. */
  override async kill(): Promise<void> {
    const children = this.running ? childrenOf(this.pid) : [];
    await super.kill();
    for (const pid of children) signal(pid, 'SIGKILL');
    await waitUntil(() => children.every((pid) => 'Z?'.includes(stateOf(pid))), {
      what: `the processes of PostgreSQL on port ${this.port} to end`,
    });
    this.#releaseFrozen();
  }

  override async stop(): Promise<void> {
    await this.kill();
    await removeSharedMemory(this.dir);
    await super.stop();
  }

  protected override async deleteData(): Promise<void> {
    await removeSharedMemory(this.dir);
    await super.deleteData();
  }

  get #data(): string {
    return path.join(this.dir, 'data');
  }

  protected override async prepare(): Promise<void> {
    await giveAway(this.dir);
    const { command, args } = unprivileged(findServer('initdb'), [
      ...['-D', this.#data, '-U', 'postgres', '-A', 'trust'],
      ...['-E', 'UTF8', '--locale=C', '--no-sync', '--wal-segsize=1'],
    ]);
    await promisify(execFile)(command, args, { cwd: this.dir });
  }

  protected override program() {
    const settings = Object.entries({ ...SETTINGS, ...this.#settings });
    const program = unprivileged(findServer('postgres'), [
      ...['-D', this.#data, '-p', String(this.port)],
      ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ]);
    return { ...program, env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' } };
  }

  protected override async isReady(): Promise<boolean> {
    const [row] = await this.query('SHOW data_directory', { timeoutMs: 2_000 }).catch((error: unknown) => {
      // 57P03: the server is still starting. Another refusal is that of another server, until ours reports that the port is taken.
      throw error instanceof PostgresReplyError ? new Error(error.message) : error;
    });
    return row?.['data_directory'] === this.#data;
  }

  #releaseFrozen(): void {
    for (const pid of this.#frozen.splice(0)) this.#guardian?.release(pid);
  }
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 300,
  shared_buffers: '32MB',
  // Killed processes lose nothing by these, and no test cuts the power.
  fsync: 'off',
  full_page_writes: 'off',
  // Leaves nothing in /dev/shm when it is killed.
  dynamic_shared_memory_type: 'mmap',
};

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && statOf(Number(name))?.parent === parent)
    .map(Number);
}

/** `?` when there is no such process. */
function stateOf(pid: number): string {
  return statOf(pid)?.state ?? '?';
}

function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state = '?', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended by itself.
  }
}

/** A killed server leaves its (small) segment of System V shared memory, which only its next start would remove. */
async function removeSharedMemory(dir: string): Promise<void> {
  try {
    const lines = readFileSync(path.join(dir, 'data', 'postmaster.pid'), 'utf8').split('\n');
    const id = lines[6]?.trim().split(/\s+/)[1];
    if (id !== undefined) await promisify(execFile)('ipcrm', ['-m', id]);
  } catch {
    // The server was stopped before, or removed the segment itself.
  }
}
