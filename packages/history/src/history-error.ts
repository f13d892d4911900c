// A registered symbol of @locks/core: its `isLockError()` knows this error too, without a dependency.
const brand = Symbol.for('@locks/core/LockError');

/** The position of a malformed line in a history. */
export interface HistoryPosition {
  /** The path as it was given to `readHistory()`; absent where the history is no file. */
  readonly file?: string | undefined;
  /** The number of the line, or of the event; the first is 1. */
  readonly line: number;
}

/**
 * The error for a malformed history, or a malformed argument of a function of this package; `isLockError()` of `@locks/core`
 * knows it too.
 */
export class HistoryError extends Error {
  override readonly name = 'HistoryError';
  /** The code, the same for every malformed history. */
  readonly code = 'LOCK_INVALID_ARGUMENT';
  /** The file of the malformed line; `undefined` where the history is no file. */
  readonly file: string | undefined;
  /** The malformed line, from 1; of a history that is no text, the event. `undefined` where an argument is at fault. */
  readonly line: number | undefined;

  constructor(problem: string, position?: HistoryPosition) {
    super(position === undefined ? problem : `${placeOf(position)}: ${problem}`);
    this.file = position?.file;
    this.line = position?.line;
    Object.defineProperty(this, brand, { value: true });
  }
}

function placeOf({ file, line }: HistoryPosition): string {
  return file === undefined ? `line ${line}` : `${file}:${line}`;
}

/** A value for a message, shortened. */
export function show(value: unknown): string {
  const text = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? String(value));
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
