import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** What a participant does something to. */
export interface Target {
  readonly name: string;
  readonly mode?: 'read' | 'write' | 'permit';
}

const ANSWERS_WITHIN_MS = 60_000;

/** A process that has the packages of one version: scripts/applications/upgrade/participant.js in a fresh project. */
export class Participant {
  readonly version: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #last = 0;
  #said = '';

  private constructor(version: string, child: ChildProcess) {
    this.version = version;
    this.#child = child;
    this.#ended = once(child, 'close').then(() => this.#failAll(`ended:\n${this.#said}`));
    const ready = Promise.withResolvers<unknown>();
    this.#calls.set(0, ready);
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#said += chunk.toString()));
    child.on('message', (answer) => this.#settle(answer as Answer));
  }

  static async start(
    project: { readonly folder: string; readonly version: string },
    store: string,
    env: NodeJS.ProcessEnv,
  ): Promise<Participant> {
    const child = fork(join(project.folder, 'upgrade/participant.js'), [store], {
      cwd: project.folder,
      env: { ...process.env, ...env },
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const participant = new Participant(project.version, child);
    try {
      await participant.#answerTo(0, 'start');
    } catch (error) {
      await participant.kill();
      throw error;
    }
    return participant;
  }

  /** The fencing token, `'no token'`, or `'refused'`. */
  tryAcquire(what: Target): Promise<string> {
    return this.#call('tryAcquire', what) as Promise<string>;
  }

  acquire(what: Target): Promise<string> {
    return this.#call('acquire', what) as Promise<string>;
  }

  async release(what: Target): Promise<void> {
    await this.#call('release', what);
  }

  isValid(what: Target): Promise<boolean> {
    return this.#call('isValid', what) as Promise<boolean>;
  }

  modes(): Promise<readonly string[]> {
    return this.#call('modes', {}) as Promise<readonly string[]>;
  }

  async count(what: { name: string; file: string; times: number }): Promise<void> {
    await this.#call('count', what);
  }

  async end(): Promise<void> {
    await this.#call('end', {});
    await this.#ended;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #call(call: string, what: object): Promise<unknown> {
    const id = (this.#last += 1);
    this.#calls.set(id, Promise.withResolvers());
    this.#child.send({ id, call, what });
    const answer = this.#answerTo(id, call);
    // A check that failed meanwhile waits for no answer.
    answer.catch(() => undefined);
    return answer;
  }

  async #answerTo(id: number, call: string): Promise<unknown> {
    const { promise, reject } = this.#calls.get(id) as PromiseWithResolvers<unknown>;
    const limit = setTimeout(
      () => reject(new Error(`version ${this.version} does not answer to ${call}:\n${this.#said}`)),
      ANSWERS_WITHIN_MS,
    );
    return await promise.finally(() => clearTimeout(limit));
  }

  #settle({ id, value, error }: Answer): void {
    const call = this.#calls.get(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(`version ${this.version}: ${error}`));
  }

  #failAll(why: string): void {
    for (const { promise, reject } of this.#calls.values()) {
      // Nobody may wait for this answer.
      promise.catch(() => undefined);
      reject(new Error(`the process of version ${this.version} ${why}`));
    }
  }
}
