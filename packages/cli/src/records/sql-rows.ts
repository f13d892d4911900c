import type { SlotEntry } from '@locks/once';

/** A row of the table of slots, as the client libraries give it: big numbers are texts, or bigints. */
export interface SlotRow {
  readonly slot: string;
  readonly state: SlotEntry['state'];
  readonly token: string | bigint;
  readonly label: string;
  readonly at: string | bigint;
}

export function entryOfRow(row: SlotRow | undefined): SlotEntry | undefined {
  if (row === undefined) return undefined;
  const { slot, state, token, label, at } = row;
  return { slot, state, token: BigInt(token), label, at: Number(at) };
}
