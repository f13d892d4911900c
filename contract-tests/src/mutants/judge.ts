import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { CaseVerdict, MutantOrder } from './mutant-process.ts';

const MAIN = fileURLToPath(new URL('./mutant-process.ts', import.meta.url));
const ANSWER_MS = 120_000;
const END_MS = 3_000;

/** The process in which one mutant runs cases: nothing that it breaks reaches another. */
export class Judge {
  readonly #name: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  /** `name`: of a mutant, or of a host as it is. */
  constructor(name: string) {
    this.#name = name;
    this.#process = fork(MAIN, [], {
      execArgv: [],
      env: { ...process.env, LOCKS_MUTANT: name },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#ended = once(this.#process, 'exit');
  }

  async run(order: MutantOrder): Promise<CaseVerdict[]> {
    const enough = new AbortController();
    const signal = AbortSignal.any([enough.signal, AbortSignal.timeout(ANSWER_MS)]);
    const answered = once(this.#process, 'message', { signal });
    answered.catch(() => {});
    this.#process.send(order);
    const answer = await Promise.race([answered, this.#ended.then(() => undefined)]);
    enough.abort();
    if (answer === undefined) throw new Error(`The process of ${this.#name} ended without an answer.`);
    return answer[0] as CaseVerdict[];
  }

  async end(): Promise<void> {
    const kill = setTimeout(() => this.#process.kill('SIGKILL'), END_MS);
    if (this.#process.connected) this.#process.disconnect();
    await this.#ended;
    clearTimeout(kill);
  }
}
