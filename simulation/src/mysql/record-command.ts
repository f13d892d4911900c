/** A record of the simulated store: a row of the table of locks. Times are microseconds of the server's clock. */
export interface LockRecordRow {
  readonly version: number;
  readonly token: number;
  readonly waiting: number;
  readonly freeAt: number;
  /** When it was written. */
  readonly at: number;
  readonly state: string;
}

export interface WantedRecord extends Pick<LockRecordRow, 'version' | 'state'> {
  readonly name: string;
  readonly span: number;
}

/** Replaces the version that a decision was made from, while the holds that lived then still do. */
export interface RecordWrite {
  readonly name: string;
  readonly version: number;
  readonly aliveUntil: number | undefined;
  /** Only the record knows the end of its hold. */
  readonly standsOnRow: boolean;
  /** The last end that is known, and the longest time that counts from the write. */
  readonly freeAt: number;
  readonly span: number;
  readonly next: Pick<LockRecordRow, 'version' | 'token' | 'waiting' | 'state'>;
}

/** One step of the store. */
export type RecordCommand =
  | { readonly kind: 'take' | 'take all'; readonly records: readonly WantedRecord[] }
  | { readonly kind: 'write'; readonly writes: readonly RecordWrite[] }
  | {
      readonly kind: 'read';
      readonly names: readonly string[];
      readonly known: readonly number[];
      /** A client that was silent for so long counts as dead. */
      readonly aliveMicros: number;
    }
  | { readonly kind: 'beat' | 'leave'; readonly client: string }
  | { readonly kind: 'version' | 'nothing' };

/** Cells of rows, or how many records a write found and the value that it tells of itself. */
export type RecordAnswer =
  | { readonly rows: readonly (readonly (string | number)[])[] }
  | { readonly affected: number; readonly value: number };
