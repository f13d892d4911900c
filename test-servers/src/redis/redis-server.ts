import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { type LocationOptions, ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { GiveUp } from '../wait-until.ts';
import { RedisReplyError, type RespValue } from './resp.ts';
import { parseInfo, sendCommand } from './send-command.ts';

/** How to start one process of Redis, as a data node or as a sentinel. */
export interface RedisLaunch extends LocationOptions {
  readonly password?: string | undefined;
  /** The arguments of `redis-server`; may also write files first. Called again at a restart. */
  argv(location: ServerLocation): readonly string[] | Promise<readonly string[]>;
}

/** Starts one process of Redis and waits until it answers. */
export async function launchRedis(launch: RedisLaunch): Promise<RedisServer> {
  return await startServer(launch, (location) => new RedisServer(location, launch));
}

/** A private server on loopback. */
export class RedisServer extends ManagedServer {
  protected readonly title = 'redis-server';
  protected override readonly data = ['dump.rdb', 'appendonlydir', 'appendonly.aof'];
  readonly #launch: RedisLaunch;

  constructor(location: ServerLocation, launch: RedisLaunch) {
    super(location);
    this.#launch = launch;
  }

  get url(): string {
    const { password } = this.#launch;
    const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
    return `redis://${credentials}${this.host}:${this.port}`;
  }

  /**
   * Kills the server if it still runs and starts it again on the same port.
   *
   * @param options - `keepData`: saves first if it still runs, and loads what was saved. By default it comes back
   *   empty. A cluster node or a sentinel keeps its identity and its view of the others either way.
   */
  override async restart({ keepData = false }: { keepData?: boolean } = {}): Promise<void> {
    if (keepData && this.running) {
      this.resume();
      await this.command('SAVE');
    }
    await super.restart({ keepData });
  }

  /**
   * Sends one command on a connection of its own. Rejects with a `RedisReplyError` when the server refuses it, and
   * after 10 s without an answer.
   */
  async command(...args: [string, ...(string | number)[]]): Promise<RespValue> {
    return await sendCommand(this, args, { password: this.#launch.password });
  }

  async info(section = 'default'): Promise<Record<string, string>> {
    return parseInfo(await this.command('INFO', section));
  }

  protected override async program() {
    return { command: findServer('redis-server'), args: await this.#launch.argv(this) };
  }

  protected override async isReady(): Promise<boolean> {
    const { password } = this.#launch;
    const reply = await sendCommand(this, ['INFO'], { password, timeoutMs: 1_000 }).catch(
      (error: unknown) => {
        const refused = error instanceof RedisReplyError && ['NOAUTH', 'WRONGPASS'].includes(error.code);
        throw refused ? new GiveUp(new Error(`${error.message} Give it as the option \`password\`.`)) : error;
      },
    );
    const { process_id: pid = this.pid, loading } = parseInfo(reply);
    return Number(pid) === this.pid && loading !== '1';
  }
}

let major: Promise<number> | undefined;

/** The installed Redis's major version. */
export async function redisMajor(): Promise<number> {
  major ??= promisify(execFile)(findServer('redis-server'), ['--version']).then(({ stdout }) =>
    Number(/v=(\d+)/.exec(stdout)?.[1] ?? 0),
  );
  return await major;
}
