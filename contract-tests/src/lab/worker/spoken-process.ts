import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A program of another language may take its time on a busy machine. */
const START_MS = 60_000;

/**
 * A process in another language. It answers each line of its standard input, a command with its arguments as a JSON list, with a line of
 * JSON, after a line of its own when it is ready. It ends with its input.
 */
export class SpokenProcess {
  readonly child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #waiting: { resolve(line: string): void; reject(error: Error): void }[] = [];
  readonly #isReady: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.child = child;
    const { stdin, stdout } = child;
    if (stdin === null || stdout === null) throw new Error('A worker has no pipes.');
    stdin.on('error', () => undefined);
    this.#ended = once(child, 'close');
    void this.#ended.then(() => {
      for (const { reject } of this.#waiting) reject(new Error('The process ended.'));
    });
    this.#isReady = this.#line();
    createInterface({ input: stdout }).on('line', (line) => this.#waiting.shift()?.resolve(line));
  }

  async ready(): Promise<void> {
    const limit = setTimeout(() => this.child.kill('SIGKILL'), START_MS);
    try {
      await this.#isReady;
    } finally {
      clearTimeout(limit);
    }
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#ended;
  }

  async ask(...command: readonly unknown[]): Promise<unknown> {
    this.child.stdin?.write(`${JSON.stringify(command)}\n`);
    return JSON.parse(await this.#line());
  }

  #line(): Promise<string> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}
