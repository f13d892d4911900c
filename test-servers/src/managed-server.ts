import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { currentConditions } from './conditions/conditions.ts';
import { freePort } from './free-port.ts';
import { guardian } from './guardian.ts';
import { type ServerCommand, type ServerProcess, spawnServer } from './server-process.ts';
import { GiveUp, waitUntil } from './wait-until.ts';

/** Where a server listens, and the directory that is its own: for its data, its configuration and its log. */
export interface ServerLocation {
  readonly port: number;
  readonly dir: string;
  /** The directory is the caller's to delete. */
  readonly keepDir?: boolean;
  /** More variables of its environment. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

export interface LocationOptions {
  /** Part of the name of the directory. */
  readonly label: string;
  /** @defaultValue a free port */
  readonly port?: number | undefined;
  /** @defaultValue a fresh directory, deleted by `stop` */
  readonly dir?: string | undefined;
  readonly withClusterBus?: boolean;
}

const HOST = '127.0.0.1';
const READY_WITHIN_MS = 30_000;
/** How long a restart waits for its port: a killed server's sockets may outlive it for a moment. */
const PORT_WITHIN_MS = 5_000;
const MOST_TRIES = 10;
const PORT_TAKEN = /address already in use|failed listening on port|can't start server: bind|BindException/i;

/** A private server on loopback: started, paused, killed and restarted as a process. Nothing of it outlives this process. */
export abstract class ManagedServer implements AsyncDisposable {
  readonly host = HOST;
  readonly port: number;
  readonly dir: string;
  readonly #keepDir: boolean;
  readonly #env: NodeJS.ProcessEnv | undefined;
  #process: ServerProcess | undefined;

  constructor({ port, dir, keepDir = false, env }: ServerLocation) {
    this.port = port;
    this.dir = dir;
    this.#keepDir = keepDir;
    this.#env = env;
  }

  /** For messages. */
  protected abstract readonly title: string;
  /** What runs the server; asked at each start. */
  protected abstract program(): Omit<ServerCommand, 'directory'> | Promise<Omit<ServerCommand, 'directory'>>;
  /** Whether this very process serves clients; the server that answers on the port may be another one. */
  protected abstract isReady(): Promise<boolean>;
  /** Writes what a start without data needs. */
  protected async prepare(): Promise<void> {}
  /** Its data, by their paths in its directory. */
  protected readonly data: readonly string[] = [];

  /** Of the process that runs now, or ran last. */
  get pid(): number {
    return this.#process?.pid ?? Number.NaN;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  /** To be called once. Resolves when the server serves clients; one that does not start leaves nothing behind. */
  async start(): Promise<this> {
    return await readyAfter(this, async () => {
      await this.prepare();
      await this.#launch(0);
    });
  }

  /** SIGSTOP: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process?.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  /** `kill -9`. What a store has acknowledged is in its files; the port is free afterwards. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /**
   * Kills the server if it still runs and starts it again on the same port.
   *
   * @param options - `keepData`: default true; `false` starts it without its data
   */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    await this.kill();
    if (!keepData) {
      await this.deleteData();
      await this.prepare();
    }
    await this.#launch(PORT_WITHIN_MS);
  }

  protected async deleteData(): Promise<void> {
    await Promise.all(
      this.data.map((name) => rm(path.join(this.dir, name), { recursive: true, force: true })),
    );
  }

  /** What the server printed last. */
  logTail(lines?: number): string {
    return this.#process?.logTail(lines) ?? '';
  }

  /** For `isReady`: the end of what was printed may be full of complaints about clients that did not wait. */
  protected hasPrinted(text: string): boolean {
    return this.#process?.hasPrinted(text) ?? false;
  }

  /** Ends the server, whatever its state, and deletes its directory. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    if (!this.#keepDir) await rm(this.dir, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Tries the port, for `portWithinMs` if it is taken. */
  async #launch(portWithinMs: number): Promise<void> {
    const deadline = performance.now() + portWithinMs;
    const what = `${this.title} on port ${this.port} to be ready`;
    for (;;) {
      const { env = process.env, ...program } = await this.program();
      this.#process = await spawnServer({
        ...program,
        env: { ...env, ...this.#env },
        directory: this.dir,
      });
      try {
        await waitUntil(() => this.#isReady(), { what, timeoutMs: READY_WITHIN_MS, everyMs: 5 });
        return;
      } catch (error) {
        await this.kill();
        if (!(error instanceof PortTakenError) || performance.now() >= deadline) throw error;
      }
    }
  }

  async #isReady(): Promise<boolean> {
    if (this.running) return await this.isReady();
    if (PORT_TAKEN.test(this.logTail(200)))
      throw new GiveUp(new PortTakenError(`Port ${this.port} is taken.`));
    throw new GiveUp(
      new Error(`${this.title} did not start on port ${this.port}; it printed:\n${this.logTail()}`),
    );
  }
}

class PortTakenError extends Error {}

/** Starts the server that `create` makes for a location; on another free port when the first was taken meanwhile. */
export async function startServer<S extends ManagedServer>(
  options: LocationOptions,
  create: (location: ServerLocation) => S,
): Promise<S> {
  const attempt = async () => await create(await locationFor(options)).start();
  return options.port === undefined ? await withAnotherPort(attempt) : await attempt();
}

export async function locationFor({
  label,
  port,
  dir,
  withClusterBus = false,
}: LocationOptions): Promise<ServerLocation> {
  // Read before anything is awaited: they are those of the start.
  const { disk, env } = currentConditions();
  return {
    port: port ?? (await freePort({ withClusterBus })),
    dir: dir ?? (await makeDirectory(label, disk)),
    keepDir: dir !== undefined,
    env,
  };
}

/** A directory that is deleted with this process, or one on a disk of the servers. */
export async function makeDirectory(label: string, disk?: string): Promise<string> {
  if (disk !== undefined) return await mkdtemp(path.join(disk, `${label}-`));
  return await (await guardian()).makeDirectory(label);
}

/** Servers that belong together. */
export class ServerGroup<S extends ManagedServer = ManagedServer> implements AsyncDisposable {
  readonly members: readonly S[];

  constructor(members: readonly S[]) {
    this.members = members;
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Resolves with servers when `work` is done; where it fails, they are stopped. */
export async function readyAfter<S extends { stop(): Promise<void> }>(
  servers: S,
  work: () => Promise<unknown>,
): Promise<S> {
  try {
    await work();
    return servers;
  } catch (error) {
    await servers.stop();
    throw error;
  }
}

/** The servers that are being started; when one of them fails, the others are stopped. */
export async function startTogether<S extends ManagedServer>(starting: readonly Promise<S>[]): Promise<S[]> {
  const results = await Promise.allSettled(starting);
  const servers = results.filter((result) => result.status === 'fulfilled').map(({ value }) => value);
  const failure = results.find((result) => result.status === 'rejected');
  if (!failure) return servers;
  await Promise.all(servers.map((server) => server.stop()));
  throw failure.reason;
}

/** Repeats an attempt that looks for free ports: another process may use one before the server does. */
export async function withAnotherPort<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof PortTakenError) || tries >= MOST_TRIES) throw error;
    }
  }
}
