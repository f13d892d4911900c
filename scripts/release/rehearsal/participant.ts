import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

const ANSWERS_WITHIN_MS = 60_000;

/** A project with the packages of one version. */
export interface Version {
  readonly folder: string;
  readonly version: string;
}

/** A process that has the packages of one version: scripts/applications/upgrade/participant.js in a fresh project. */
export class Participant {
  readonly version: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #said = '';

  constructor({ folder, version }: Version, store: string, env: NodeJS.ProcessEnv) {
    this.version = version;
    this.#child = fork(join(folder, 'upgrade/participant.js'), [store], {
      cwd: folder,
      env: { ...process.env, ...env },
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#ended = once(this.#child, 'close').then(() => {
      for (const { reject } of this.#calls.values()) reject(this.#failure('ended'));
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#said += chunk.toString()));
    this.#child.on('message', (answer) => {
      const { id, value, error } = answer as Answer;
      const call = this.#calls.get(id);
      if (error === undefined) call?.resolve(value);
      else call?.reject(this.#failure(error));
    });
  }

  /** What the participant answers to a call of `scripts/applications/upgrade/participant.js`. */
  call<T = string>(name: string, what: object = {}): Promise<T> {
    const id = this.#calls.size;
    const call = Promise.withResolvers<unknown>();
    this.#calls.set(id, call);
    this.#child.send({ id, call: name, what }, (error) => error && call.reject(error));
    const late = setTimeout(() => call.reject(this.#failure(`no answer to ${name}`)), ANSWERS_WITHIN_MS);
    const answer = call.promise.finally(() => clearTimeout(late));
    // A check that failed meanwhile waits for no answer.
    answer.catch(() => undefined);
    return answer as Promise<T>;
  }

  async end(): Promise<void> {
    await this.call('end');
    await this.#ended;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #failure(what: string): Error {
    return new Error(`the process of version ${this.version}: ${what}\n${this.#said}`);
  }
}
