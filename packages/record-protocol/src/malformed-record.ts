import { StoreLayoutError } from '@locks/core/backend';
import { type LockRow, NO_ROW } from './lock-row.ts';

/** Something else than these locks has written what stands in the place of a lock's record. */
export class MalformedRecordError extends Error {
  override readonly name = 'MalformedRecordError';
  readonly code = 'MALFORMED_RECORD';

  /** @param where - the record, as the message names it */
  constructor(where: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(
      `${where} is not a record of this package (${why}). Find out what wrote it. Delete it while nobody holds the lock, or choose another ` +
        'prefix',
      { cause },
    );
  }
}

/** A part of a record is not what this package writes. */
export class MalformedPartError extends Error {
  override readonly name = 'MalformedPartError';
}

/**
 * Decodes a row. One that cannot be decoded is a row with an error, so that it fails what is asked of its own name, and nothing else.
 *
 * @param where - the record, as a message names it
 */
export function decodedOr(where: string, decode: () => LockRow): LockRow {
  try {
    return decode();
  } catch (error) {
    const malformed = error instanceof StoreLayoutError ? error : new MalformedRecordError(where, error);
    return { ...NO_ROW, malformed };
  }
}

export function mustHold(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new MalformedPartError(what);
}
