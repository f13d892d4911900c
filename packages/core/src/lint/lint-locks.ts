import { matching, optional, type OptionTable, readOptions, wholeNumber } from '../backend/read-options.ts';
import { quote } from '../errors.ts';
import { followHeldLocks } from './held-locks.ts';
import { type AskedLock, OrderGraph, type Sighting } from './order-graph.ts';
import { Place } from './place.ts';

/** One order in which two locks were taken. */
export interface LockOrder {
  /** The lock that was held. */
  readonly held: string;
  /** The lock that was asked for meanwhile. */
  readonly asked: string;
  /** Where the first one was asked for: frames of the stack, one a line, or why they are not known. */
  readonly heldAt: string;
  /** Where the second one was asked for. */
  readonly askedAt: string;
}

/** Orders that contradict each other: code that follows them at the same time may deadlock. */
export interface OrderContradiction {
  /** The warning without the places. */
  readonly message: string;
  /** The orders: what one of them asks for, or a lock of its class, is held in the next one, and so on in a circle. */
  readonly orders: readonly LockOrder[];
}

/** Options of {@link lintLocks}. */
export interface LintOptions {
  /**
   * Gives the class of a lock by its name: locks of one class are taken in one order with those of another. Names with ids need it, as
   * `account:17`, whose pairs are hardly ever seen twice.
   * @defaultValue the name itself
   */
  readonly classOf?: ((name: string) => string) | undefined;
  /**
   * Called for each contradiction, in place of the warning.
   * @defaultValue a warning of the process with the code `LOCKS_LINT_ORDER`
   */
  readonly onContradiction?: ((contradiction: OrderContradiction) => void) | undefined;
  /**
   * How many orders are kept, as a number of pairs of classes, from 1 to 1 000 000. A warning with the code `LOCKS_LINT_FULL` says that there
   * are more, which are not looked at.
   * @defaultValue 10 000
   */
  readonly maxOrders?: number | undefined;
}

const callable = matching(
  'a function',
  (value): value is (...given: never) => unknown => typeof value === 'function',
);
/**
 * How many places of each class are kept, besides those of orders that are new: a stack trace takes three times as long as all else that
 * is done for an acquire.
 */
const PLACES_OF_CLASS = 32;
const LINT_TABLE = {
  classOf: optional(callable),
  onContradiction: optional(callable),
  maxOrders: optional(wholeNumber(1, 1_000_000), 10_000),
} satisfies OptionTable<LintOptions>;

// setup: import { lintLocks } from '@locks/core/lint';
/**
 * Warns of code that may deadlock, before it ever does: it records in which orders this process takes its locks, one while it holds
 * another, and warns once of orders that contradict each other, directly or over further locks, with the places of both. For development
 * and tests: an acquire costs a few microseconds more, and a stack trace the first 32 times that a lock of its class is taken, and whenever an
 * order is new. Locks that are taken in the order of their names, as by `all`, and single attempts never
 * contradict.
 *
 * @returns a function that ends it
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const stop = lintLocks({ classOf: (name) => name.replace(/:.*$/, '') });
 * stop();
 * ```
 */
export function lintLocks(options?: LintOptions): () => void {
  const { maxOrders } = readOptions('lintLocks()', options, LINT_TABLE);
  const { classOf = (name: string) => name, onContradiction = warn } = options ?? {};
  const graph = new OrderGraph(classOf, maxOrders);
  const seen = new Map<string, number>();
  const isEarly = (lock: AskedLock): boolean => {
    const key = graph.keyOf(lock);
    const count = seen.get(key) ?? 0;
    if (count === PLACES_OF_CLASS) return false;
    // Of names without a class there is no end.
    if (seen.size === maxOrders) seen.clear();
    seen.set(key, count + 1);
    return true;
  };
  let isFull = false;
  return followHeldLocks((asked, held) => {
    const before = [...held];
    // A lock that is asked for again is re-entered, or refused: what was taken since then does not come before it.
    const isAgain = before.some(({ name, backend }) => name === asked.name && backend === asked.backend);
    const orders = isAgain
      ? []
      : before.map((one) => ({ held: one, asked })).filter((one) => graph.isNew(one));
    if (isEarly(asked) || orders.length > 0) asked.place = new Place();
    for (const order of orders) {
      const circle = graph.add(order);
      if (circle !== undefined) onContradiction(contradictionOf(circle));
    }
    if (isFull || !graph.isFull) return;
    isFull = true;
    process.emitWarning(
      `lintLocks() has seen ${maxOrders} pairs of locks, and looks at no others. Let its option classOf give the same class to names that ` +
        'differ by an id.',
      { code: 'LOCKS_LINT_FULL' },
    );
  });
}

function warn({ message, orders }: OrderContradiction): void {
  const detail = orders
    .map(
      ({ held, asked, heldAt, askedAt }) =>
        `${quote(held)} was taken\n${indented(heldAt)}\n  and then ${quote(asked)}\n${indented(askedAt)}`,
    )
    .join('\n');
  process.emitWarning(message, { code: 'LOCKS_LINT_ORDER', detail });
}

function indented(lines: string): string {
  return lines.replace(/^/gm, '    ');
}

function contradictionOf(circle: readonly Sighting[]): OrderContradiction {
  const orders = circle.map(({ held, asked }) => ({
    held: held.name,
    asked: asked.name,
    heldAt: placeOf(held),
    askedAt: placeOf(asked),
  }));
  const texts = orders.map(({ held, asked }) => `${quote(held)} and then ${quote(asked)}`);
  const message = `Locks are taken in orders that may deadlock: ${texts.join('; elsewhere ')}. Take locks in one order everywhere, or together with locks.all().`;
  return { message, orders };
}

function placeOf({ place }: AskedLock): string {
  return (
    place?.frames ??
    `together with others, by all(), or after the first ${PLACES_OF_CLASS} times, whose places are kept`
  );
}
