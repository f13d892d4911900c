import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import type { JudgeCommands } from './mutant-process.ts';

const MAIN = fileURLToPath(new URL('./mutant-process.ts', import.meta.url));
const RUN_LIMIT_MS = 120_000;
const TEARDOWN_LIMIT_MS = 3_000;

/** The process in which one mutant runs cases, so that its faults reach no other mutant. */
export class Judge {
  readonly #process: CallableProcess<JudgeCommands>;

  /** `name` is that of a mutant, or of a host without a mutation. */
  constructor(name: string) {
    const child = fork(MAIN, [], {
      execArgv: [],
      env: { ...process.env, LOCKS_MUTANT: name },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#process = new CallableProcess(child, RUN_LIMIT_MS);
  }

  run: JudgeCommands['run'] = (options) => this.#process.call.run(options);

  async end(): Promise<void> {
    const kill = setTimeout(() => void this.#process.kill(), TEARDOWN_LIMIT_MS);
    await this.#process.call.teardown().catch(() => {});
    clearTimeout(kill);
    await this.#process.kill();
  }
}
