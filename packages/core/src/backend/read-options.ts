import { describe, invalidArgument, type LockError, mustBe, quote } from '../errors.ts';

/**
 * Reads one option: gives its value, or throws `LOCK_INVALID_ARGUMENT`.
 *
 * @param value - as the user gave it; `undefined` where it was not given
 * @param what - the option's name in messages: `tableBackend(): maxPollMs`
 */
export type OptionReader<T> = (value: unknown, what: string) => T;

/** A reader for every option of `O`: `satisfies OptionTable<MyOptions>` finds an option without a reader. */
export type OptionTable<O> = { readonly [K in keyof O]-?: OptionReader<unknown> };

/** The values that {@link readOptions} gives for a table. */
export type OptionsRead<T> = {
  readonly [K in keyof T]: T[K] extends OptionReader<infer V> ? V : never;
};

// setup: import { milliseconds, optional, type OptionTable, readOptions, text } from '@locks/core/backend';
/**
 * Checks the options object of a public function and gives the value of every option of the table. A name that is not in
 * the table is refused: a misspelt option, ignored, could put two processes on different keys.
 *
 * @param caller - the name of the function with parentheses: every message begins with it
 * @param given - the user's argument; `undefined` stands for no options
 * @param table - the options that exist, in the order of the messages
 * @param elsewhere - options that belong to other functions, and to which
 * @throws LockError `LOCK_INVALID_ARGUMENT`, naming the option, its value and what is allowed
 * @example
 * ```ts
 * interface TableOptions {
 *   readonly path: string;
 *   readonly maxPollMs?: number;
 * }
 *
 * const table = {
 *   path: text('the path of a file', /./),
 *   maxPollMs: optional(milliseconds(1, 1_000), 25),
 * } satisfies OptionTable<TableOptions>;
 *
 * function tableBackend(options: TableOptions) {
 *   const { path, maxPollMs } = readOptions('tableBackend()', options, table);
 *   return `${path}, polled every ${maxPollMs} ms`;
 * }
 * ```
 */
export function readOptions<const T extends OptionTable<T>>(
  caller: string,
  given: unknown,
  table: T,
  elsewhere: Readonly<Record<string, string>> = {},
): OptionsRead<T> {
  const options = given === undefined ? {} : asOptions(caller, given, table);
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(table, name)) continue;
    // An object of a class in place of the options, such as a client, has properties that nobody misspelt.
    if (!isPlain(options)) throw notOptions(caller, given, table);
    throw unknownOption(caller, name, Object.keys(table), elsewhere);
  }
  const read: Record<string, unknown> = {};
  // Every option is read once: a getter may give another value the second time.
  for (const name in table) read[name] = table[name](options[name], `${caller}: ${name}`);
  return read as OptionsRead<T>;
}

/** An option that need not be given; `fallback` is its default. `null` is refused, as a value of a wrong type. */
export function optional<T>(read: OptionReader<T>): OptionReader<T | undefined>;
export function optional<T>(read: OptionReader<T>, fallback: NoInfer<T>): OptionReader<T>;
export function optional<T>(read: OptionReader<T>, fallback?: T): OptionReader<T | undefined> {
  return (value, what) => (value === undefined ? fallback : read(value, what));
}

/** A number of milliseconds, whole or not. */
export function milliseconds(least: number, most: number): OptionReader<number> {
  // Every comparison with NaN is false.
  return matching(
    `a number of milliseconds from ${least} to ${most}`,
    (value): value is number => typeof value === 'number' && value >= least && value <= most,
  );
}

/**
 * Reads a whole number from `least` to `most`.
 *
 * @param unit - for messages: `milliseconds`
 */
export function wholeNumber(least: number, most: number, unit?: string): OptionReader<number> {
  return matching(
    `a whole number${unit === undefined ? '' : ` of ${unit}`} from ${least} to ${most}`,
    (value): value is number => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  );
}

/** One of a few values: `oneOf(true, false)`, `oneOf('normal', 'full')`. */
export function oneOf<const T extends string | boolean>(...values: readonly T[]): OptionReader<T> {
  return matching(values.join(' or '), (value): value is T => values.includes(value as T));
}

/**
 * Text that matches a pattern.
 *
 * @param allowed - the continuation of "must be" in messages
 * @param isSecret - the value may hold a password: no message shows it
 */
export function text(allowed: string, pattern: RegExp, isSecret = false): OptionReader<string> {
  return (value, what) => {
    if (typeof value === 'string' && pattern.test(value)) return value;
    throw isSecret && value !== undefined
      ? invalidArgument(`${what} must be ${allowed}.`)
      : mustBe(what, allowed, value);
  };
}

/**
 * A value that passes a test.
 *
 * @param allowed - the continuation of "must be" in messages
 */
export function matching<T>(allowed: string, accepts: (value: unknown) => value is T): OptionReader<T> {
  return (value, what) => {
    if (accepts(value)) return value;
    throw mustBe(what, allowed, value);
  };
}

/**
 * Checks the first argument of a public function that takes what the application has opened, and then options.
 *
 * @param caller - the name of the function with parentheses: every message begins with it
 * @param name - what the function calls its first argument: `client`
 * @param allowed - the continuation of "must be" in messages
 * @throws LockError `LOCK_INVALID_ARGUMENT`, which says what comes first where options came
 */
export function readClient<T>(
  caller: string,
  name: string,
  given: unknown,
  allowed: string,
  accepts: (value: unknown) => value is T,
): T {
  if (accepts(given)) return given;
  const isOptions = typeof given === 'object' && given !== null && isPlain(given);
  const hint = isOptions
    ? ` It comes first, and the options second: ${caller.slice(0, -1)}${name}, { … }).`
    : '';
  throw invalidArgument(`${caller}: the ${name} must be ${allowed}, not ${describe(given)}.${hint}`);
}

/** Refuses arguments that are no options: an object in a wrong place would be one without any known option. */
function asOptions(
  caller: string,
  given: unknown,
  table: OptionTable<object>,
): Readonly<Record<string, unknown>> {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) {
    // An instance of a class may hold options as its properties.
    if (isPlain(given) || Object.keys(given).length > 0) return given as Record<string, unknown>;
  }
  throw notOptions(caller, given, table);
}

/** Whether an object is no instance of a class: a plain object of any realm has a prototype that has none. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The refusal of what is no options object. Where it is the value of an option, such as a client, the message names that option. */
function notOptions(caller: string, given: unknown, table: OptionTable<object>): LockError {
  const readers: [string, OptionReader<unknown>][] = Object.entries(table);
  const isValue = typeof given === 'string' || typeof given === 'object' || typeof given === 'function';
  const meant = isValue && readers.find(([, read]) => accepts(read, given) && !accepts(read, NO_VALUE));
  const hint = meant ? ` Pass { ${meant[0]} } with it.` : '';
  return invalidArgument(`${caller}: the options must be a plain object, not ${describe(given)}.${hint}`);
}

/** A value that only readers accept which check nothing. */
const NO_VALUE = Symbol('no value');

function accepts(read: OptionReader<unknown>, value: unknown): boolean {
  try {
    read(value, '');
    return true;
  } catch {
    return false;
  }
}

function unknownOption(
  caller: string,
  name: string,
  known: readonly string[],
  elsewhere: Readonly<Record<string, string>>,
): Error {
  const meant = nearest(name, known);
  const hint = Object.hasOwn(elsewhere, name)
    ? ` It belongs to ${elsewhere[name]}.`
    : meant && ` Did you mean ${meant}?`;
  return invalidArgument(
    `${caller} has no option ${quote(name)}.${hint ?? ''} It has ${known.join(', ') || 'none'}.`,
  );
}

/** The word that is most similar to a misspelt one, if one is similar enough. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = 3;
  for (const candidate of known) {
    const differing = differingPart(name.toLowerCase(), candidate.toLowerCase());
    if (differing < least && differing * 2 < candidate.length) [best, least] = [candidate, differing];
  }
  return best;
}

/** How many characters lie between the common beginning and the common end of two words. */
function differingPart(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length);
  let head = 0;
  while (head < shorter && one[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
  const differing = Math.max(one.length, other.length) - head - tail;
  const isSwap = differing === 2 && one[head] === other[head + 1] && one[head + 1] === other[head];
  // Two letters in the wrong order are one mistake.
  return isSwap ? 1 : differing;
}
