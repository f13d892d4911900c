import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { guardian } from '../guardian.ts';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';
import {
  type PostgresAddress,
  PostgresReplyError,
  type QueryOptions,
  type Row,
  simpleQuery,
} from './simple-query.ts';
import { unprivileged } from './unprivileged.ts';

export interface PostgresPlace {
  readonly port: number;
  /** The server's own directory; the data are in `data` below it. */
  readonly dir: string;
  readonly args: readonly string[];
}

/** A private PostgreSQL on loopback. Everybody is let in without a password; the superuser is `postgres`. */
export class PostgresServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly dir: string;
  readonly #args: readonly string[];
  #process: ServerProcess;
  #frozen: number[] = [];

  constructor(place: PostgresPlace, running: ServerProcess) {
    this.port = place.port;
    this.dir = place.dir;
    this.#args = place.args;
    this.#process = running;
  }

  get url(): string {
    return this.urlOf('postgres');
  }

  urlOf(database: string): string {
    return `postgres://postgres@${this.host}:${this.port}/${encodeURIComponent(database)}`;
  }

  /** Of the process that runs now, or ran last. */
  get pid(): number {
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  /** Runs SQL as the superuser, on a connection of its own; gives the rows as texts. */
  async query(sql: string, options?: QueryOptions): Promise<Row[]> {
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
  async pause(): Promise<void> {
    // The postmaster first: from now on it makes no new ones.
    await this.#process.pause();
    const guard = await guardian();
    this.#frozen = childrenOf(this.pid);
    for (const pid of this.#frozen) {
      // Each leads a group of its own, and a stopped one would not notice that the postmaster is gone.
      await guard.guard(pid);
      signal(pid, 'SIGSTOP');
    }
    await waitUntil(() => this.#frozen.every((pid) => 'TZ?'.includes(stateOf(pid))), {
      what: `the processes of PostgreSQL on port ${this.port} to stop`,
    });
  }

  async resume(): Promise<void> {
    for (const pid of this.#frozen) signal(pid, 'SIGCONT');
    await this.#letGo();
    this.#process.resume();
  }

  /** `kill -9` of all its processes, frozen or not. What was committed is in its files. */
  async kill(): Promise<void> {
    const children = this.running ? childrenOf(this.pid) : [];
    await this.#process.kill();
    for (const pid of children) signal(pid, 'SIGKILL');
    await waitUntil(() => children.every((pid) => 'Z?'.includes(stateOf(pid))), {
      what: `the processes of PostgreSQL on port ${this.port} to end`,
    });
    await this.#letGo();
  }

  /** Kills the server if it still runs and starts it again on the same port, with its data. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await launchOn(this, this.#args, 5_000);
  }

  /** What the server printed last. */
  logTail(lines?: number): string {
    return this.#process.logTail(lines);
  }

  /** Ends it, whatever its state, and deletes its directory. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    await removeSharedMemory(this.dir);
    await rm(this.dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #letGo(): Promise<void> {
    const guard = await guardian();
    for (const pid of this.#frozen.splice(0)) guard.release(pid);
  }
}

export class PortTakenError extends Error {}

/** Tries one port, for `patienceMs` if it is taken. */
export async function launchOn(
  { port, dir }: { readonly port: number; readonly dir: string },
  args: readonly string[],
  patienceMs: number,
): Promise<ServerProcess> {
  const deadline = performance.now() + patienceMs;
  const place = ['-D', path.join(dir, 'data'), '-p', String(port)];
  const program = unprivileged(findServer('postgres'), [...place, ...settings, ...args]);
  for (;;) {
    const running = await spawnServer({
      ...program,
      directory: dir,
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
    });
    try {
      await waitUntilReady(running, { host: '127.0.0.1', port }, dir);
      return running;
    } catch (error) {
      await running.kill();
      if (error instanceof PortTakenError && performance.now() < deadline) continue;
      throw error;
    }
  }
}

const settings = Object.entries({
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: 300,
  shared_buffers: '32MB',
  // Killed processes lose nothing by these, and no test cuts the power.
  fsync: 'off',
  full_page_writes: 'off',
  // Leaves nothing in /dev/shm when it is killed.
  dynamic_shared_memory_type: 'mmap',
}).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

async function waitUntilReady(running: ServerProcess, address: PostgresAddress, dir: string): Promise<void> {
  const ready = async () => {
    if (!running.running) throw new GiveUp(startFailure(running, address));
    const [row] = await simpleQuery(address, 'SHOW data_directory', { timeoutMs: 2_000 }).catch(
      (error: unknown) => {
        // 57P03: it is still starting. Another refusal is of somebody else's server, until ours says that the port is taken.
        throw error instanceof PostgresReplyError ? new Error(error.message) : error;
      },
    );
    return row?.['data_directory'] === path.join(dir, 'data');
  };
  await waitUntil(ready, {
    what: `PostgreSQL on port ${address.port} to be ready`,
    timeoutMs: 30_000,
    everyMs: 10,
  });
}

function startFailure(running: ServerProcess, { port }: PostgresAddress): Error {
  const log = running.logTail();
  if (/Address already in use/i.test(log)) return new PortTakenError(`Port ${port} is taken.`);
  return new Error(`PostgreSQL did not start on port ${port}; it printed:\n${log}`);
}

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
    // It has ended by itself.
  }
}

/** A killed server leaves its (small) segment of System V shared memory, which only its next start would remove. */
async function removeSharedMemory(dir: string): Promise<void> {
  try {
    const lines = readFileSync(path.join(dir, 'data', 'postmaster.pid'), 'utf8').split('\n');
    const id = lines[6]?.trim().split(/\s+/)[1];
    if (id !== undefined) await promisify(execFile)('ipcrm', ['-m', id]);
  } catch {
    // It was stopped before, or removed the segment itself.
  }
}
