import { HistoryError } from './history-error.ts';
import { linesOf } from './read-history.ts';
import { checkTraceLine, type TraceLine } from './trace-line.ts';
import type { TracePlace } from './trace-rules.ts';

/** A line that could not be read. */
export interface MalformedLine extends TracePlace {
  readonly problem: string;
}

/** A trace that was read. */
export interface ReadTrace {
  readonly lines: readonly (TracePlace & { readonly event: TraceLine })[];
  /** Lines that are not of a trace. */
  readonly malformed: readonly MalformedLine[];
  /** The last lines of files that end in the middle of a line, as those of killed processes do. */
  readonly truncated: readonly TracePlace[];
}

interface TextLine {
  readonly file: string | undefined;
  readonly line: number;
  readonly text: string;
  readonly isOpen: boolean;
}

// setup: import { checkTrace, parseTrace } from '@locks/history';
/**
 * Reads a trace that is in memory.
 *
 * @param texts - JSON lines: one text for each file
 * @example
 * ```ts
 * const { lines, malformed } = parseTrace('{"step":"end","time":12.5}');
 * console.log(lines.length, malformed);
 * ```
 */
export function parseTrace(...texts: readonly string[]): ReadTrace {
  return read(
    texts.flatMap((text) => {
      const all = text.split('\n');
      return all.map((one, index) => ({
        file: undefined,
        line: index + 1,
        text: one,
        isOpen: index === all.length - 1,
      }));
    }),
  );
}

// setup: import { checkTrace, readTrace } from '@locks/history';
/**
 * Reads a trace from files: one for each process, or several after each other in one.
 *
 * @param files - paths of JSON lines
 * @throws HistoryError `LOCK_INVALID_ARGUMENT` without files; the error of the file system where a file cannot be read
 * @example
 * ```ts
 * const { malformed } = readTrace('worker-1.jsonl', 'worker-2.jsonl');
 * for (const { file, line, problem } of malformed) console.error(`${file}:${line}: ${problem}`);
 * ```
 */
export function readTrace(...files: readonly string[]): ReadTrace {
  if (files.length === 0 || files.some((file) => typeof file !== 'string' || file === ''))
    throw new HistoryError('readTrace(): every argument must be the path of a file, and there must be one.');
  return read(
    (function* () {
      for (const file of files) yield* linesOf(file);
    })(),
  );
}

function read(texts: Iterable<TextLine>): ReadTrace {
  const lines: (TracePlace & { readonly event: TraceLine })[] = [];
  const malformed: MalformedLine[] = [];
  const truncated: TracePlace[] = [];
  for (const { file, line, text, isOpen } of texts) {
    // An empty line ends a file.
    if (text.trim() === '') continue;
    const place = { file, line };
    try {
      lines.push({ ...place, event: checkTraceLine(JSON.parse(text), { line }) });
    } catch (error) {
      if (error instanceof SyntaxError && isOpen) truncated.push(place);
      else malformed.push({ ...place, problem: (error as Error).message });
    }
  }
  return { lines, malformed, truncated };
}
