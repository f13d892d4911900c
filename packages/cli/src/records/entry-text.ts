import type { SlotEntry } from '@locks/once';

/** An entry as JSON; the token is a decimal string. */
export function textOfEntry(entry: SlotEntry): string {
  return JSON.stringify({ ...entry, token: String(entry.token) });
}

/** @throws SyntaxError, TypeError for what {@link textOfEntry} did not write */
export function entryOfText(text: string): SlotEntry {
  const { token, ...entry } = JSON.parse(text) as Omit<SlotEntry, 'token'> & { readonly token: string };
  return { ...entry, token: BigInt(token) };
}
