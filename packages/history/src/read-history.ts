import { closeSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { HistoryError, type HistoryPosition } from './history-error.ts';
import { checkEvent, type HistoryEvent } from './history-event.ts';

const CHUNK_BYTES = 1 << 20;

interface HistoryLine extends HistoryPosition {
  readonly text: string;
}

interface FileLine extends HistoryLine {
  readonly file: string;
  /** Whether nothing ends the line: whoever wrote it may have been killed. */
  readonly isOpen: boolean;
}

/** Events with the position of the one that was read last. */
export class HistoryReader implements Iterable<HistoryEvent> {
  readonly #open: () => Iterable<HistoryLine>;
  position: HistoryPosition = { line: 0 };

  constructor(open: () => Iterable<HistoryLine>) {
    this.#open = open;
  }

  *[Symbol.iterator](): Generator<HistoryEvent> {
    for (const line of this.#open()) {
      this.position = line;
      // An empty line ends a file, or separates what several processes wrote.
      if (line.text.trim() !== '') yield checkEvent(parse(line), line);
    }
  }
}

// setup: import { parseHistory } from '@locks/history';
/**
 * The events of a history that is in memory, read and checked while they are iterated.
 *
 * @param text - JSON lines: one text, or the lines one by one
 * @throws HistoryError `LOCK_INVALID_ARGUMENT` with the `line`, during the iteration
 * @example
 * ```ts
 * const [first] = parseHistory('{"type":"info","operation":"crash","process":"worker 1","time":12.5}');
 * console.log(first?.process);
 * ```
 */
export function parseHistory(text: string | Iterable<string>): Iterable<HistoryEvent> {
  if (typeof text !== 'string' && typeof text?.[Symbol.iterator] !== 'function')
    throw new HistoryError('parseHistory(): the history must be a text, or its lines.');
  return new HistoryReader(function* () {
    let line = 0;
    for (const one of typeof text === 'string' ? text.split('\n') : text)
      yield { text: one, line: (line += 1) };
  });
}

// setup: import { checkHistory, readHistory } from '@locks/history';
/**
 * The events of a history in files, read and checked while they are iterated, in pieces of 1 MB. Every process may write a file of
 * its own.
 *
 * @param files - paths of JSON lines
 * @throws HistoryError `LOCK_INVALID_ARGUMENT` with `file` and `line`, during the iteration; the error of the file system where a
 *   file cannot be read
 * @example
 * ```ts
 * const { violations } = checkHistory(readHistory('worker-1.jsonl', 'worker-2.jsonl'));
 * for (const { sentence } of violations) console.error(sentence);
 * ```
 */
export function readHistory(...files: readonly string[]): Iterable<HistoryEvent> {
  if (files.length === 0 || files.some((file) => typeof file !== 'string' || file === ''))
    throw new HistoryError(
      'readHistory(): every argument must be the path of a file, and there must be one.',
    );
  return new HistoryReader(function* () {
    for (const file of files) yield* linesOf(file);
  });
}

export function* linesOf(file: string): Generator<FileLine> {
  const descriptor = openSync(file, 'r');
  try {
    const decoder = new StringDecoder('utf8');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let line = 0;
    let rest = '';
    for (let bytes = -1; bytes !== 0; ) {
      bytes = readSync(descriptor, chunk);
      const lines = (rest + decoder.write(chunk.subarray(0, bytes))).split('\n');
      rest = lines.pop() as string;
      for (const text of lines) yield { text, file, line: (line += 1), isOpen: false };
    }
    if (rest !== '') yield { text: rest, file, line: line + 1, isOpen: true };
  } finally {
    closeSync(descriptor);
  }
}

function parse(line: HistoryLine): unknown {
  try {
    return JSON.parse(line.text);
  } catch (error) {
    throw new HistoryError(`not JSON: ${(error as Error).message}`, line);
  }
}
