import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { guardian } from './guardian.ts';
import { waitUntil } from './wait-until.ts';

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The server's own directory: its working directory, and the place of its log. */
  readonly directory: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A server as a process: guarded from its first instruction on, stopped and killed by its own pid. */
export class ServerProcess {
  readonly pid: number;
  readonly logFile: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  /** The bytes of earlier processes of the server. */
  readonly #logStart: number;

  constructor(child: ChildProcess, pid: number, logFile: string, logStart: number, exited: Promise<void>) {
    this.#child = child;
    this.pid = pid;
    this.logFile = logFile;
    this.#logStart = logStart;
    this.#exited = exited;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The end of what the server printed, for messages. */
  logTail(lines = 15): string {
    return readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  }

  /** Whether this process has printed a text, however much it printed since. */
  hasPrinted(text: string): boolean {
    return readFileSync(this.logFile).indexOf(text, this.#logStart) >= 0;
  }

  /** SIGSTOP: the server keeps its connections and answers nothing. Resolves when the process is stopped. */
  async pause(): Promise<void> {
    this.#signal('SIGSTOP');
    if (process.platform !== 'linux') return;
    await waitUntil(() => this.#state() === 'T', { what: `process ${this.pid} to stop`, timeoutMs: 5_000 });
  }

  resume(): void {
    this.#signal('SIGCONT');
  }

  /** `kill -9`, also of a paused server. Resolves when the process is gone. */
  async kill(): Promise<void> {
    if (!this.running) return await this.#exited;
    this.#child.ref();
    try {
      this.#signal('SIGKILL');
    } catch {
      // The server has ended by itself; its exit event follows.
    }
    await this.#exited;
  }

  #signal(name: NodeJS.Signals): void {
    if (!this.running) throw new Error(`Cannot send ${name}: the server with pid ${this.pid} has ended.`);
    process.kill(-this.pid, name);
  }

  #state(): string | undefined {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0];
  }
}

/** Starts `command`; nothing of it outlives this process. Resolves when it runs, not when it is ready. */
export async function spawnServer(server: ServerCommand): Promise<ServerProcess> {
  const guard = await guardian();
  const logFile = path.join(server.directory, 'server.log');
  const log = openSync(logFile, 'a');
  const logStart = fstatSync(log).size;
  // The shell becomes the server only after the guardian knows its pid; it ends by itself if this process dies before.
  const child = spawn(
    'sh',
    ['-c', 'read -r go && exec "$@" </dev/null', 'sh', server.command, ...server.args],
    {
      cwd: server.directory,
      env: server.env ?? process.env,
      stdio: ['pipe', log, log],
      detached: true,
    },
  );
  closeSync(log);
  const exited = once(child, 'exit').then(() => {
    if (child.pid !== undefined) guard.release(child.pid);
  });
  const { pid } = child;
  if (pid === undefined) {
    await exited;
    throw new Error(`Could not start ${server.command}.`);
  }
  child.unref();
  child.stdin?.on('error', () => undefined);
  await guard.guard(pid);
  child.stdin?.end('go\n');
  return new ServerProcess(child, pid, logFile, logStart, exited);
}
