import type { LockRow } from './lock-row.ts';
import type { RecordVersion, StoredRecord } from './record-store.ts';
import { decodeState, encodeState, type HoldJson } from './state-json.ts';

/** The times of a hold as its record says them: they need no clock of the reader. */
export interface HoldTimes {
  /** The id of the write that granted or last renewed the hold: while it is the same, the hold was not renewed. */
  readonly mark: number;
  /** How long the hold lasts from that write, in microseconds. */
  readonly span: number;
  /** The time of the store's clock by which it has ended, in microseconds, where the writer knew that clock. */
  readonly end?: number | undefined;
}

/** What a row of a record needs to be written over. */
export interface RecordSource {
  readonly storeVersion: RecordVersion;
  readonly times: ReadonlyMap<string, HoldTimes>;
}

interface Head {
  /** The id of the write. */
  readonly write: number;
  readonly token: number;
  /** The writer's clock at the write, in microseconds near to those since 1970: for operators only. */
  readonly at: number;
  readonly name: string;
}

const NEW_LINE = 0x0a;
/** Enough for the id of the write, which comes first. */
const HEAD_BYTES = 32;

/**
 * Encodes a row as the value of a record: a line of JSON about the record, and one with its state, unless nobody holds and nobody
 * waits.
 *
 * @param times - the times of every hold
 */
export function encodeRecord(
  head: Head,
  row: Pick<LockRow, 'holds' | 'waiters'>,
  times: ReadonlyMap<string, HoldTimes>,
): Buffer {
  const state = encodeState(row, ({ id }) => times.get(id) ?? {});
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), state]);
}

/** The id of the write that made the record; 0 for a value of another kind. */
export function writeOf({ value }: StoredRecord): number {
  const [, digits] = /^\{"write":(\d+),/.exec(asText(value.subarray(0, HEAD_BYTES))) ?? [];
  return Number(digits ?? 0);
}

/** Decodes the value of a record. The ends of its holds are left open: they are the reader's to say. */
export function decodeRecord({ value, version: storeVersion }: StoredRecord): {
  readonly name: string;
  readonly row: LockRow;
  readonly source: RecordSource;
} {
  const end = value.indexOf(NEW_LINE);
  const head = JSON.parse(asText(value.subarray(0, end))) as Head;
  const times = new Map<string, HoldTimes>();
  const row = decodeState(
    { version: head.write, token: head.token, at: head.at, bytes: value.subarray(end + 1) },
    ({ id, mark = head.write, span = 0, end: endsAt }: HoldJson) => {
      times.set(id, { mark, span, end: endsAt });
      return undefined;
    },
  );
  const source: RecordSource = { storeVersion, times };
  return { name: head.name, row: { ...row, source }, source };
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}
