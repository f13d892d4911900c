import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { type ServerProcess, spawnServer } from '../server-process.ts';
import { GiveUp, waitUntil } from '../wait-until.ts';
import { RedisReplyError, type Reply } from './resp.ts';
import { parseInfo, type RedisAddress, sendCommand } from './send-command.ts';

/** How to start one process of Redis, as a data node or as a sentinel. */
export interface RedisLaunch {
  /** Part of the name of its directory. */
  readonly label: string;
  readonly port?: number | undefined;
  readonly withClusterBus?: boolean;
  /** A directory to use; it is the caller's to delete. Default: a fresh one, deleted by `stop`. */
  readonly dir?: string | undefined;
  readonly password?: string | undefined;
  /** The arguments of `redis-server`; may also write files first. Asked again at a restart. */
  argv(place: { port: number; dir: string }): readonly string[] | Promise<readonly string[]>;
}

/** A private server on loopback. */
export class RedisServer implements AsyncDisposable {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly dir: string;
  readonly #launch: RedisLaunch;
  #process: ServerProcess;

  constructor(launch: RedisLaunch, place: { port: number; dir: string }, running: ServerProcess) {
    this.#launch = launch;
    this.port = place.port;
    this.dir = place.dir;
    this.#process = running;
  }

  get url(): string {
    const { password } = this.#launch;
    const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
    return `redis://${credentials}${this.host}:${this.port}`;
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

  /** `kill -9`. Nothing is saved; the port is free afterwards. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /**
   * Kills the server if it still runs and starts it again on the same port.
   *
   * @param options - `keepData`: saves first if it still runs, and loads what was saved. By default it comes back
   *   empty. A cluster node or a sentinel keeps its identity and its view of the others either way.
   */
  async restart({ keepData = false }: { keepData?: boolean } = {}): Promise<void> {
    if (keepData && this.running) {
      this.resume();
      await this.command('SAVE');
    }
    await this.kill();
    if (!keepData) await this.#deleteData();
    this.#process = await launchOn(this.#launch, this, 5_000);
  }

  /**
   * Sends one command on a connection of its own. Rejects with a `RedisReplyError` when the server refuses it, and
   * after 10 s without an answer.
   */
  async command(...args: [string, ...(string | number)[]]): Promise<Reply> {
    return await sendCommand(this, args, { password: this.#launch.password });
  }

  async info(section = 'default'): Promise<Record<string, string>> {
    return parseInfo(await this.command('INFO', section));
  }

  /** What the server printed last. */
  logTail(lines?: number): string {
    return this.#process.logTail(lines);
  }

  /** Ends it, whatever its state, and deletes its directory. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    if (this.#launch.dir === undefined) await rm(this.dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #deleteData(): Promise<void> {
    const data = ['dump.rdb', 'appendonlydir', 'appendonly.aof'];
    await Promise.all(data.map((name) => rm(path.join(this.dir, name), { recursive: true, force: true })));
  }
}

/** Starts one process of Redis and waits until it answers; takes another port when the first was snatched away. */
export async function launchRedis(launch: RedisLaunch): Promise<RedisServer> {
  const dir = launch.dir ?? (await (await guardian()).makeDirectory(launch.label));
  for (let tries = 1; ; tries += 1) {
    const port = launch.port ?? (await freePort({ withClusterBus: launch.withClusterBus ?? false }));
    try {
      return new RedisServer(launch, { port, dir }, await launchOn(launch, { port, dir }, 0));
    } catch (error) {
      if (error instanceof PortTakenError && launch.port === undefined && tries < 10) continue;
      if (launch.dir === undefined) await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }
}

class PortTakenError extends Error {}

/** Tries one port, for `patienceMs` if it is taken. */
async function launchOn(
  launch: RedisLaunch,
  place: { port: number; dir: string },
  patienceMs: number,
): Promise<ServerProcess> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const command = findServer('redis-server');
    const args = await launch.argv(place);
    const running = await spawnServer({ command, args, directory: place.dir });
    try {
      await waitUntilReady(running, { host: '127.0.0.1', port: place.port }, launch.password);
      return running;
    } catch (error) {
      await running.kill();
      if (error instanceof PortTakenError && performance.now() < deadline) continue;
      throw error;
    }
  }
}

async function waitUntilReady(running: ServerProcess, address: RedisAddress, password: string | undefined) {
  const ready = async () => {
    if (!running.running) throw new GiveUp(startFailure(running, address));
    const reply = await sendCommand(address, ['INFO'], { password, timeoutMs: 1_000 }).catch(
      (error: unknown) => {
        const asked =
          error instanceof RedisReplyError && (error.code === 'NOAUTH' || error.code === 'WRONGPASS');
        throw asked ? new GiveUp(new Error(`${error.message} Give it as the option \`password\`.`)) : error;
      },
    );
    const info = parseInfo(reply);
    // Whoever answers on this port may be somebody else's server.
    if (info['process_id'] === undefined || Number(info['process_id']) === running.pid)
      return info['loading'] !== '1';
    return false;
  };
  await waitUntil(ready, {
    what: `redis-server on port ${address.port} to be ready`,
    timeoutMs: 20_000,
    everyMs: 5,
  });
}

function startFailure(running: ServerProcess, { port }: RedisAddress): Error {
  const log = running.logTail();
  if (/Address already in use|Failed listening on port/i.test(log))
    return new PortTakenError(`Port ${port} is taken.`);
  return new Error(`redis-server did not start on port ${port}; it printed:\n${log}`);
}

let major: Promise<number> | undefined;

/** The installed Redis's major version. */
export async function redisMajor(): Promise<number> {
  major ??= promisify(execFile)(findServer('redis-server'), ['--version']).then(({ stdout }) =>
    Number(/v=(\d+)/.exec(stdout)?.[1] ?? 0),
  );
  return await major;
}
