import { LockError } from '../errors.ts';

/** The entry of work in the slot store: the last slot that was done, or begun. */
export interface SlotEntry {
  /** The slot, as the function `slot` of `once` gave it. */
  readonly slot: string;
  /**
   * `begun` is written with `retry: 'next-slot'` only: a run whose entry stays `begun` failed, or died. `reset` is written by `resetSlot`:
   * the entry keeps no slot from running.
   */
  readonly state: 'begun' | 'done' | 'reset';
  /** The fencing token of the lease under which the entry was written. */
  readonly token: bigint;
  /** The writer, for people: the option `label`. */
  readonly label: string;
  /** The time of the write, for people: milliseconds since 1970 by the clock of the writer. */
  readonly at: number;
}

/** The answer of a slot store to a read. */
export interface SlotAnswer {
  /** The entry as it was last written; `undefined` where the work has none. */
  readonly entry: SlotEntry | undefined;
  /**
   * The time of the store when it answered, in milliseconds since 1970 in UTC: `once` refuses slots that lie in its future. `undefined` where
   * the store tells no time.
   */
  readonly storeTime: number | undefined;
}

/**
 * The slot store of the last slot of all work for `once` of `@locks/once`: one entry for each name, in a store that does not lose it.
 */
export interface SlotStore {
  /** Reads the entry, with the time of the store in the same request; never from a replica or a cache, which may be stale. */
  read(name: string): Promise<SlotAnswer>;
  /**
   * Replaces the entry *in one step*, unless its token is higher than that of the new entry.
   * @returns whether it was written. An error with the code `LOCK_LOST`, as `fencedSet` throws it, means the same as `false`
   */
  write(name: string, entry: SlotEntry): Promise<boolean>;
}

/** The version of what {@link slotEntryText} writes. A newer one is refused: this process would lose what it does not know. */
const VERSION = 1;

/** An entry as JSON; the token is a decimal string. */
export function slotEntryText(entry: SlotEntry): string {
  return JSON.stringify({ version: VERSION, ...entry, token: String(entry.token) });
}

/**
 * The entry of a text that `slotEntryText` wrote.
 *
 * @throws LockError `LOCK_UNSUPPORTED` for one of a newer version; SyntaxError, TypeError for any other text
 */
export function readSlotEntry(written: string): SlotEntry {
  const {
    version = VERSION,
    token,
    ...entry
  } = JSON.parse(written) as Omit<SlotEntry, 'token'> & {
    readonly token: string;
    readonly version?: number;
  };
  refuseNewerSlotEntry(version);
  return { ...entry, token: BigInt(token) };
}

/**
 * Refuses an entry that a newer version of a slot store has written.
 *
 * @throws LockError `LOCK_UNSUPPORTED`
 */
export function refuseNewerSlotEntry(version: number): void {
  if (version <= VERSION) return;
  throw new LockError(
    'LOCK_UNSUPPORTED',
    `The entry of the work has version ${version}, and this process knows ${VERSION}: upgrade the package that keeps the slots.`,
  );
}
