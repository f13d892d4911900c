import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';

const START_MS = 30_000;

/**
 * A process of the application, with one client of one library, in any language. It says `ready`, then answers each line that it reads:
 * `take NAME WAITMS` by `taken` or `failed …`, `free` by `freed` or `failed …`. It ends with its input.
 */
export class LockProcess implements AsyncDisposable {
  /** What it said last. */
  said = '';
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #lines: Interface;
  #answered: ((line: string) => void) | undefined;

  private constructor([program, ...args]: readonly [string, ...string[]]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = new Promise((resolve) => this.#child.once('close', resolve).once('error', resolve));
    // The answer to a process that has ended.
    this.#child.stdin?.on('error', () => undefined);
    this.#lines = createInterface(this.#child.stdout as NodeJS.ReadableStream);
    this.#lines.on('line', (line) => this.#answered?.(line));
    void this.#exited.then(() => this.#answered?.('failed: the process ended'));
  }

  static async start(command: readonly [string, ...string[]]): Promise<LockProcess> {
    const started = new LockProcess(command);
    const limit = setTimeout(() => started.#child.kill('SIGKILL'), START_MS);
    const line = await started.#answer();
    clearTimeout(limit);
    if (line !== 'ready') throw new Error(`${command.join(' ')}: ${line}`);
    return started;
  }

  /** Takes a lock. @returns whether it was taken within `waitMs` */
  async take(name: string, waitMs: number): Promise<boolean> {
    return (await this.#ask(`take ${name} ${waitMs}`)) === 'taken';
  }

  /** Frees the lock that was taken last. @returns whether the library says that it held it until now */
  async free(): Promise<boolean> {
    return (await this.#ask('free')) === 'freed';
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Ends the process as a deployment does: it frees nothing that it does not hold. */
  async end(): Promise<void> {
    this.#child.stdin?.end();
    await this.#exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  #ask(line: string): Promise<string> {
    const answer = this.#answer();
    this.#child.stdin?.write(`${line}\n`);
    return answer;
  }

  async #answer(): Promise<string> {
    const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
    const line = new Promise<string>((resolve) => (this.#answered = resolve));
    this.said = hasEnded ? 'failed: the process ended' : await line;
    return this.said;
  }
}

/** Runs a step of a build. @returns what is missing, in a sentence */
export async function missingFor(
  cwd: string,
  program: string,
  ...args: string[]
): Promise<string | undefined> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  try {
    const [code] = (await once(child, 'close')) as [number];
    return code === 0 ? undefined : `${program} ${args[0]} failed: ${said.trim().split('\n').at(-1)}`;
  } catch {
    return `${program} is not installed`;
  }
}
