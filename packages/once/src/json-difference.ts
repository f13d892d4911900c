/**
 * What JSON would change of a value, with its place, as `items[0] is a Map`; `undefined` where JSON gives back an equal value. A property that
 * is `undefined` counts as absent, and -0 as 0.
 */
export function jsonDifference(
  value: unknown,
  place = 'it',
  above: readonly object[] = [],
): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : `${place} is ${value}`;
    case 'undefined':
      return above.length === 0 || !Array.isArray(above.at(-1)) ? undefined : `${place} is undefined`;
    case 'object':
      return value === null ? undefined : ofObject(value, place, above);
    default:
      return `${place} is a ${typeof value}`;
  }
}

function ofObject(value: object, place: string, above: readonly object[]): string | undefined {
  if (above.includes(value)) return `${place} contains itself`;
  const isArray = Array.isArray(value);
  if (!isPlain(value, isArray)) return `${place} is an object of ${value.constructor?.name || 'a class'}`;
  if (Object.getOwnPropertySymbols(value).length > 0) return `${place} has a symbol as a key`;
  const path = [...above, value];
  // The items of an array are counted, since holes have no keys.
  const keys = isArray ? Array.from(value.keys(), String) : Object.keys(value);
  if (isArray && Object.keys(value).length > keys.length) return `${place} is an array with properties`;
  for (const key of keys) {
    const within = isArray
      ? `${above.length === 0 ? '' : place}[${key}]`
      : above.length === 0
        ? key
        : `${place}.${key}`;
    const found = jsonDifference((value as Readonly<Record<string, unknown>>)[key], within, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether the object is a literal, of whatever realm: its prototype, or that of the array's, is the last one. */
function isPlain(value: object, isArray: boolean): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return true;
  const last: unknown = Object.getPrototypeOf(prototype);
  return isArray ? last !== null && Object.getPrototypeOf(last) === null : last === null;
}
