import { createHash, randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createWriteStream, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { finished } from 'node:stream/promises';
import type { Writable } from 'node:stream';
import { checkOptions } from './check-options.ts';
import { HistoryError, show } from './history-error.ts';
import { type ProtocolMessage, TraceEncoder } from './trace-encoder.ts';

/** Options of {@link recordTrace}. */
export interface TraceOptions {
  /**
   * Names the store: clients whose traces name the same one share their locks.
   * @defaultValue the name of the backend
   */
  readonly store?: string | undefined;
  /**
   * Whether the trace has a hash in place of each name of a lock.
   * @defaultValue false
   */
  readonly hashNames?: boolean | undefined;
  /**
   * How many lines are kept while the file or the stream is slower than the locks. Further ones are dropped, and counted.
   * @defaultValue 100 000
   */
  readonly mostLines?: number | undefined;
}

/** A trace that is being recorded. */
export interface TraceRecording extends AsyncDisposable {
  /** How many lines were dropped, since the file or the stream was too slow, or failed. */
  readonly dropped: number;
  /** Ends the recording, and resolves when all lines are written. @throws the error of the file or the stream */
  close(): Promise<void>;
}

const CHANNEL = 'locks:protocol';
/** What is kept is written after this time, in milliseconds: a write of a file costs more than hundreds of lines. */
const WRITE_AFTER_MS = 50;
/** So many lines are written at once. */
const LINES_AT_ONCE = 1_000;
/** How often the trace says what the wall clock shows, in milliseconds. */
const CLOCK_EVERY_MS = 10_000;

// setup: import { recordTrace } from '@locks/history';
/**
 * Records the protocol between all lock managers of this process and their stores, for `checkTrace()` and the command `locks verify`. It
 * waits for no write, and keeps no process alive. What a killed process had not written is lost.
 *
 * @param target - the path of a file, to which lines are appended, or a stream, which stays open
 * @throws HistoryError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const trace = recordTrace(`traces/${process.pid}.jsonl`);
 * process.once('SIGTERM', () => void trace.close());
 * ```
 */
export function recordTrace(target: string | Writable, options: TraceOptions = {}): TraceRecording {
  checkOptions('recordTrace()', options, ['store', 'hashNames', 'mostLines']);
  const { store, hashNames = false, mostLines = 100_000 } = options;
  const isPath = typeof target === 'string' && target !== '';
  if (!isPath && typeof (target as Partial<Writable> | null)?.write !== 'function')
    throw new HistoryError(
      `recordTrace(): the target must be the path of a file or a stream, not ${show(target)}.`,
    );
  if (!Number.isSafeInteger(mostLines) || mostLines < 1)
    throw new HistoryError(`recordTrace(): mostLines must be a whole number from 1, not ${show(mostLines)}.`);
  const stream = typeof target === 'string' ? createWriteStream(target, { flags: 'a' }) : target;
  return new Recording(stream, isPath, { store, hashNames, mostLines });
}

class Recording implements TraceRecording {
  dropped = 0;
  readonly #stream: Writable;
  readonly #isOwn: boolean;
  readonly #mostLines: number;
  readonly #encoder: TraceEncoder;
  readonly #offset = machineOffset();
  #kept: { readonly time: number; readonly message: ProtocolMessage }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isBlocked = false;
  #error: Error | undefined;
  #droppedBefore = 0;
  #clockAt: number;
  #closing: Promise<void> | undefined;

  constructor(
    stream: Writable,
    isOwn: boolean,
    options: Required<Pick<TraceOptions, 'mostLines' | 'hashNames'>> & Pick<TraceOptions, 'store'>,
  ) {
    this.#stream = stream;
    this.#isOwn = isOwn;
    this.#mostLines = options.mostLines;
    this.#encoder = new TraceEncoder(options.store, options.hashNames ? hashOf : (name) => name);
    stream.on('error', this.#failed);
    const time = this.#now();
    this.#clockAt = time;
    const process = `${hostname()}:${globalThis.process.pid}:${randomBytes(4).toString('hex')}`;
    this.#write(this.#encoder.begin(process, machine(), time, Date.now()));
    subscribe(CHANNEL, this.#receive);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  readonly #receive = (message: unknown): void => {
    if (this.#kept.length >= this.#mostLines || this.#error !== undefined) return void (this.dropped += 1);
    this.#kept.push({ time: this.#now(), message: message as ProtocolMessage });
    if (this.#isBlocked) return;
    if (this.#kept.length >= LINES_AT_ONCE) this.#flush();
    else this.#timer ??= setTimeout(this.#flush, WRITE_AFTER_MS).unref();
  };

  /** Writes what has been kept, in one piece. */
  readonly #flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const kept = this.#kept;
    this.#kept = [];
    let text = '';
    for (const { time, message } of kept) text += this.#encoder.line(time, message);
    const now = this.#now();
    if (this.dropped > this.#droppedBefore) {
      text += this.#encoder.dropped(now, this.dropped - this.#droppedBefore);
      this.#droppedBefore = this.dropped;
    }
    if (now - this.#clockAt >= CLOCK_EVERY_MS) {
      this.#clockAt = now;
      text += this.#encoder.clock(now, Date.now());
    }
    if (text !== '') this.#write(text);
  };

  #write(text: string): void {
    if (this.#error !== undefined || this.#stream.write(text, 'latin1')) return;
    this.#isBlocked = true;
    this.#stream.once('drain', () => {
      this.#isBlocked = false;
      this.#flush();
    });
  }

  readonly #failed = (error: Error): void => {
    this.#error ??= error;
  };

  async #close(): Promise<void> {
    unsubscribe(CHANNEL, this.#receive);
    this.#flush();
    if (this.#error === undefined) {
      const text = this.#encoder.end(this.#now());
      if (this.#isOwn) {
        this.#stream.end(text);
        await finished(this.#stream, { readable: false }).catch(this.#failed);
      } else {
        await new Promise<void>((resolve) => {
          this.#stream.write(text, () => resolve());
        });
      }
    }
    if (this.#error !== undefined) throw this.#error;
  }

  #now(): number {
    return performance.now() + this.#offset;
  }
}

/** On Linux all processes of a machine share this clock: it counts from the machine's start. */
function machineNow(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/** The difference between that clock and `performance.now()`, which is read faster. */
function machineOffset(): number {
  // Between two readings the process may stand still, which makes a difference too small.
  return Math.max(...Array.from({ length: 20 }, () => machineNow() - performance.now()));
}

/** The machine whose clock is read: containers of one host share it. */
function machine(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return hostname();
  }
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 16);
}
