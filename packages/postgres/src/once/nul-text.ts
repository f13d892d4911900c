/** The escape of U+0000 in a text, which PostgreSQL cannot store: names of locks may have it. */
const ESCAPE = '\u0001';

/** The text as a column of type `text` holds it. No two texts give the same one. */
export function toColumn(value: string): string {
  return value.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** The text that {@link toColumn} was given. */
export function fromColumn(value: string): string {
  return value.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}
