import { HistoryError, show } from './history-error.ts';

/**
 * Refuses options that a function does not have, so that a misspelt one is not ignored.
 *
 * @throws HistoryError
 */
export function checkOptions(caller: string, options: object, known: readonly string[]): void {
  const prototype: unknown =
    typeof options === 'object' && options !== null && Object.getPrototypeOf(options);
  if (prototype !== Object.prototype && prototype !== null)
    // A text may be an address with a password.
    throw new HistoryError(
      `${caller}: the options must be an object, not ${typeof options === 'string' ? 'a text' : show(options)}.`,
    );
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const [meant] = known.toSorted((a, b) => differences(name, a) - differences(name, b));
    throw new HistoryError(
      `${caller} has no option "${name}". Did you mean ${meant}? It has ${known.join(', ')}.`,
    );
  }
}

/** How many letters are to be added, left out or replaced (Levenshtein 1966), whatever their case. */
function differences(one: string, other: string): number {
  const [from, to] = [one.toLowerCase(), other.toLowerCase()];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(from).entries()) {
    const next = [index + 1];
    for (const [column, wanted] of Array.from(to).entries())
      next.push(
        Math.min(
          (next[column] as number) + 1,
          (row[column + 1] as number) + 1,
          (row[column] as number) + (letter === wanted ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) as number;
}
