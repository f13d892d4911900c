import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { bundleSources, PACKAGES } from '../process/bundle-sources.ts';
import type { SourceChange } from '../process/source-change.ts';
import {
  ALIVE,
  CALL,
  CALLS,
  type FileAnswer,
  type FileCall,
  type FileWork,
  GO,
  MOST_PROCESSES,
  MOST_WORKERS,
  PROCEED,
  RUNS,
  SEED,
  STATE,
  WAITS,
  WORDS,
} from './steps.ts';

const FILE_STORE = `export { FileStore } from '${PACKAGES}/file/src/file-store.ts';`;
/** A file of values is followed by another one after some writes, so that processes sweep. */
const SMALL_FILES: SourceChange = {
  file: 'file/src/value-files.ts',
  from: 'const LEAST_BYTES = 4_000_000',
  to: 'const LEAST_BYTES = 60',
};
const FEW_WRITES: SourceChange = {
  file: 'file/src/folder-sweeper.ts',
  from: 'const WRITES = 4_096',
  to: 'const WRITES = 3',
};

/** The threads that run the sources of `@locks/file`, and wait at each of their calls of the file system. */
export class FileWorkers implements Disposable {
  readonly words = new Int32Array(new SharedArrayBuffer(4 * (ALIVE + MOST_PROCESSES)));
  /** The clock of the machine, in milliseconds. */
  readonly time = new Float64Array(new SharedArrayBuffer(8));
  readonly all: readonly FileWorker[];

  private constructor(text: string) {
    this.all = Array.from({ length: MOST_WORKERS }, (_, index) => new FileWorker(this, index, text));
  }

  /** @param changes - errors that are planted; none: the sources as they are */
  static async load(changes: readonly SourceChange[] = []): Promise<FileWorkers> {
    return new FileWorkers(await bundleSources(FILE_STORE, [SMALL_FILES, FEW_WRITES, ...changes]));
  }

  [Symbol.dispose](): void {
    for (const worker of this.all) worker.end();
  }
}

/** A thread that runs a process after the other. */
export class FileWorker {
  readonly index: number;
  readonly #words: Int32Array;
  readonly #port: MessagePort;
  readonly #thread: Worker;

  constructor({ words, time }: Pick<FileWorkers, 'words' | 'time'>, index: number, text: string) {
    this.index = index;
    this.#words = words;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#thread = new Worker(new URL('worker.ts', import.meta.url), {
      workerData: { index, text, words, time, port: port2 },
      transferList: [port2],
    });
    this.#thread.unref();
    this.#untilItWaits();
  }

  /** Where it waits. */
  get call(): FileCall {
    return CALLS[this.#words[this.index * WORDS + CALL] ?? 0] as FileCall;
  }

  /** Goes on to the next call. */
  go(how: number, seed = 0): void {
    const at = this.index * WORDS;
    this.#words[at + SEED] = seed;
    Atomics.store(this.#words, at + STATE, RUNS);
    Atomics.store(this.#words, at + GO, how);
    Atomics.notify(this.#words, at + GO);
    this.#untilItWaits();
  }

  /** Begins a work, up to its first call. */
  begin(work: FileWork): void {
    this.#port.postMessage(work);
    this.go(PROCEED);
  }

  /** What came of the work, once it waits for another one. */
  answer(): FileAnswer {
    return receiveMessageOnPort(this.#port)?.message as FileAnswer;
  }

  end(): void {
    void this.#thread.terminate();
  }

  #untilItWaits(): void {
    const at = this.index * WORDS + STATE;
    for (;;) {
      const state = Atomics.load(this.#words, at);
      if (state === WAITS) return;
      // A thread that ended by an error never waits.
      if (Atomics.wait(this.#words, at, state, 30_000) === 'timed-out')
        throw new Error('a worker of the simulation of files does not answer');
    }
  }
}
