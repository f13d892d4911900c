import { StoreLayoutError } from '@locks/core/backend';
import type { LockRow } from './lock-row.ts';
import { mustHold } from './malformed-record.ts';
import type { RecordVersion, StoredRecord } from './record-store.ts';
import { decodeState, type HoldJson, stateText } from './state-json.ts';

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
  /** The ids of the last writes of the record, the latest first. */
  readonly writes: readonly number[];
}

interface Head {
  readonly write: number;
  /** The layout of the record and of its key: a process of another layout refuses what is asked of the name. */
  readonly layout: number;
  readonly token: number;
  /** The writer's clock at the write, in microseconds near to those since 1970: for operators only. */
  readonly at: number;
  readonly name: string;
  /** The ids of the writes before this one, the latest first: see {@link earlierSending}. */
  readonly before: readonly number[];
}

/**
 * The layout of keys and values. A layout that an older version would not understand has another number. The key of a lock stays, and
 * the first line of its record stays one of JSON with `write` and `layout`: so a process of each layout meets the locks of the other.
 */
const LAYOUT = 1;
/** How many writes a record names: its own, and those before. */
export const WRITES_KEPT = 9;
const NEW_LINE = 0x0a;
/** Enough for the id of the write, which comes first. */
const HEAD_BYTES = 32;

/**
 * Encodes a row as the value of a record: a line of JSON about the record, and one with its state, unless nobody holds and nobody
 * waits.
 *
 * @param before - the ids of the writes before, the latest first
 * @param times - the times of every hold
 */
export function encodeRecord(
  head: Omit<Head, 'before' | 'layout'>,
  before: readonly number[],
  row: Pick<LockRow, 'holds' | 'waiters'>,
  times: ReadonlyMap<string, HoldTimes>,
): Buffer {
  const state = stateText(row, ({ id }) => times.get(id) ?? {});
  const { write, ...rest } = head;
  const whole: Head = { write, layout: LAYOUT, ...rest, before: before.slice(0, WRITES_KEPT - 1) };
  return Buffer.from(`${JSON.stringify(whole)}\n${state}`);
}

/** The id of the write that made the record; 0 for a value of another kind. */
export function writeOf({ value }: StoredRecord): number {
  const [, digits] = /^\{"write":(\d+),/.exec(asText(value.subarray(0, HEAD_BYTES))) ?? [];
  return Number(digits ?? 0);
}

/**
 * Decodes the value of a record. The ends of its holds are left open: they are the reader's to say.
 *
 * @param where - the record, as a message names it
 * @throws StoreLayoutError for a record of another layout; Error where the value is not such a record
 */
export function decodeRecord(
  { value, version: storeVersion }: StoredRecord,
  where: string,
): {
  readonly name: string;
  readonly row: LockRow;
  readonly source: RecordSource;
} {
  const end = value.indexOf(NEW_LINE);
  mustHold(end > 0, 'it does not begin with a line of JSON');
  const head = JSON.parse(asText(value.subarray(0, end))) as Head | null;
  const layout = head?.layout;
  if (Number.isSafeInteger(layout) && layout !== LAYOUT)
    throw new StoreLayoutError(where, String(layout), LAYOUT, {
      other: 'another prefix',
      reset: 'delete the record',
    });
  mustHold(isHead(head), 'its first line does not say whose it is');
  const times = new Map<string, HoldTimes>();
  const row = decodeState(
    { version: head.write, token: head.token, at: head.at, bytes: value.subarray(end + 1) },
    ({ id, mark = head.write, span = 0, end: endsAt }: HoldJson) => {
      times.set(id, { mark, span, end: endsAt });
      return undefined;
    },
  );
  const source: RecordSource = { storeVersion, times, writes: [head.write, ...head.before] };
  return { name: head.name, row: { ...row, source }, source };
}

function isHead(head: Head | null): head is Head {
  return (
    typeof head?.name === 'string' &&
    head.layout === LAYOUT &&
    Number.isFinite(head.at) &&
    Array.isArray(head.before) &&
    head.before.every((write) => Number.isSafeInteger(write))
  );
}

/**
 * What became of a write that the store has answered with a conflict: a client repeats requests by itself, and others may have written
 * over the first one. `undefined`: it did not take place.
 *
 * @param base - the record that it was to replace
 * @param found - the record that was found
 */
export function earlierSending(
  write: number,
  base: RecordSource | undefined,
  found: RecordSource | undefined,
): 'written' | 'unknown' | undefined {
  if (found === undefined) return 'unknown';
  if (found.writes.includes(write)) return 'written';
  const [basedOn] = base?.writes ?? [];
  // All writes since the one on which this one was based are known, or all since the record was made.
  const areKnown = basedOn === undefined ? found.writes.length < WRITES_KEPT : found.writes.includes(basedOn);
  return areKnown ? undefined : 'unknown';
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

/** The name in a record; `undefined` for a heartbeat, and for what something else has written. */
export function nameIn(record: StoredRecord): string | undefined {
  if (writeOf(record) === 0) return undefined;
  try {
    return decodeRecord(record, 'a record').name;
  } catch {
    return undefined;
  }
}
