import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('./guardian.sh', import.meta.url));

/**
 * This process's link to its guardian: a shell in a session of its own that kills every guarded process group and
 * deletes their directory as soon as this process is gone, whatever ended it.
 */
export class Guardian {
  /** The parent of all servers' directories. */
  readonly directory: string;
  readonly #process: ChildProcess;
  readonly #guarded = new Set<number>();
  readonly #pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  #gone: Error | undefined;

  constructor(child: ChildProcess, directory: string, lines: NodeJS.EventEmitter) {
    this.#process = child;
    this.directory = directory;
    lines.on('line', () => {
      this.#pending.shift()?.resolve();
      this.#holdLoop();
    });
    child.once('exit', () => {
      this.#gone = new Error(
        'The guardian of the test servers ended before this process: someone killed it.',
      );
      for (const waiting of this.#pending.splice(0)) waiting.reject(this.#gone);
    });
    // In an orderly exit nothing is left, not even for a moment.
    process.once('exit', () => {
      this.#endAll();
    });
    this.#holdLoop();
  }

  /** Resolves when `pid` and its process group are certain to die with this process. */
  async guard(pid: number): Promise<void> {
    if (this.#gone) throw this.#gone;
    this.#guarded.add(pid);
    await new Promise<void>((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#holdLoop();
      this.#process.stdin?.write(`guard ${pid}\n`);
    });
  }

  /** To be called once `pid` has been reaped, since its number may then belong to another process. */
  release(pid: number): void {
    if (!this.#guarded.delete(pid) || this.#gone) return;
    this.#process.stdin?.write(`release ${pid}\n`);
  }

  async makeDirectory(label: string): Promise<string> {
    return await mkdtemp(path.join(this.directory, `${label}-`));
  }

  /** The guardian keeps this process alive only while its answer is awaited. */
  #holdLoop(): void {
    const stdout = this.#process.stdout as Socket;
    if (this.#pending.length > 0) stdout.ref();
    else stdout.unref();
  }

  #endAll(): void {
    for (const pid of this.#guarded) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // The process has just ended by itself.
      }
    }
    try {
      rmSync(this.directory, { recursive: true, force: true });
    } catch {
      // A dying server wrote into the directory: the guardian tries again.
    }
  }
}

let current: Promise<Guardian> | undefined;

/** The one guardian of this process, started at the first call. */
export async function guardian(): Promise<Guardian> {
  current ??= start();
  return await current;
}

async function start(): Promise<Guardian> {
  // It has a session of its own, which Ctrl-C and a signal to our process group do not reach. It must not hold our output open.
  const child = spawn('sh', [script, tmpdir()], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  child.unref();
  child.stdin.on('error', () => undefined);
  (child.stdin as unknown as Socket).unref();
  const lines = createInterface({ input: child.stdout });
  const exited = once(child, 'exit').then(() => {
    throw new Error(`The guardian of the test servers did not start: is ${tmpdir()} writable?`);
  });
  exited.catch(() => undefined);
  const [directory] = (await Promise.race([once(lines, 'line'), exited])) as [string];
  return new Guardian(child, directory, lines);
}
