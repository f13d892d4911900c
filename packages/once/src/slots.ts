import {
  matching,
  mustBe,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';

/**
 * The slot of a moment, as text. A later slot must be the greater text, as JavaScript compares strings with `<`. A pure function:
 * equal moments give equal slots on every machine.
 *
 * @param now - milliseconds since 1970 in UTC, as `Date.now()` gives them
 */
export type Slot = (now: number) => string;

/** Options of {@link day}. */
export interface DayOptions {
  /**
   * The time zone of the calendar: a name of the IANA data base, as `Europe/Berlin`, or an offset from UTC, as `+05:30`.
   * @defaultValue 'UTC'
   */
  readonly timeZone?: string | undefined;
  /**
   * The time at which the slot begins, as the clocks of that time zone show it. Choose one that is hours away from the time of the work:
   * `12:00` for work around midnight.
   * @defaultValue '00:00'
   */
  readonly startsAt?: string | undefined;
}

/** Options of {@link every}. */
export interface EveryOptions {
  /**
   * The offset of the slots from full multiples since 1970 in UTC, in milliseconds.
   * @defaultValue 0
   */
  readonly offsetMs?: number | undefined;
}

const HOUR_MS = 3_600_000;
const YEAR_MS = 31_536_000_000;
const OFFSET = /^([+-])([01]\d|2[0-3]):([0-5]\d)$/;
const TIME = /^([01]\d|2[0-3]):([0-5]\d)$/;

const DAY_TABLE = {
  timeZone: optional(
    matching('a time zone as Europe/Berlin, or an offset from UTC as +05:30', isTimeZone),
    'UTC',
  ),
  startsAt: optional(text('a time from 00:00 to 23:59', TIME), '00:00'),
} satisfies OptionTable<DayOptions>;
const EVERY_TABLE = {
  offsetMs: optional(wholeNumber(0, YEAR_MS, 'milliseconds'), 0),
} satisfies OptionTable<EveryOptions>;
const readEvery = wholeNumber(1, YEAR_MS, 'milliseconds');

// setup: import { day } from '@locks/once';
/**
 * One slot for each day of a calendar: `2026-11-22`. A day of 23 or 25 hours, when the clocks change, is one slot too.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const slot = day({ timeZone: 'Europe/Berlin', startsAt: '12:00' });
 * slot(Date.UTC(2026, 10, 22, 23, 30)); // '2026-11-22': half past midnight in Berlin, before noon
 * ```
 */
export function day(options?: DayOptions): Slot {
  const { timeZone, startsAt } = readOptions('day()', options, DAY_TABLE);
  const wallClock = wallClockOf(timeZone);
  const [hours, minutes] = startsAt.split(':').map(Number) as [number, number];
  const beginMs = hours * HOUR_MS + minutes * 60_000;
  // On the wall clock every day has 24 hours, so the change of the clocks moves no boundary.
  return (now) => new Date(wallClock(now) - beginMs).toISOString().slice(0, 10);
}

// setup: import { hour } from '@locks/once';
/**
 * One slot for each hour of UTC: `2026-11-22T13:00:00.000Z`. Time zones and the change of the clocks do not matter.
 *
 * @example
 * ```ts
 * hour()(Date.UTC(2026, 10, 22, 13, 59)); // '2026-11-22T13:00:00.000Z'
 * ```
 */
export function hour(): Slot {
  return every(HOUR_MS);
}

// setup: import { every } from '@locks/once';
/**
 * Slots of equal length, named after their begin in UTC.
 *
 * @param ms - a whole number of milliseconds from 1 to one year
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * // Quarters of an hour for work that starts at :00, :15, :30 and :45: the boundaries are 7 minutes away from it.
 * const slot = every(15 * 60_000, { offsetMs: 8 * 60_000 });
 * slot(Date.UTC(2026, 10, 22, 13, 14)); // '2026-11-22T13:08:00.000Z'
 * ```
 */
export function every(ms: number, options?: EveryOptions): Slot {
  const length = readEvery(ms, 'every(): ms');
  const { offsetMs } = readOptions('every()', options, EVERY_TABLE);
  return (now) => new Date(Math.floor((now - offsetMs) / length) * length + offsetMs).toISOString();
}

/** Gives the moment at which a clock of UTC shows what the clocks of the time zone show now. */
function wallClockOf(timeZone: string): (now: number) => number {
  const [, sign, hours, minutes] = OFFSET.exec(timeZone) ?? [];
  if (sign !== undefined) {
    const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
    return (now) => now + (sign === '+' ? offsetMs : -offsetMs);
  }
  const format = formatOf(timeZone);
  return (now) => {
    const parts = Object.fromEntries(
      format.formatToParts(now).map(({ type, value }) => [type, Number(value)]),
    );
    const { year = 0, month = 1, day: date = 1, hour: hours = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, date, hours, minute, second);
  };
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}

function isTimeZone(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  if (OFFSET.test(value)) return true;
  try {
    formatOf(value);
    return /^[A-Za-z]/.test(value);
  } catch {
    return false;
  }
}

/** The slot of a moment, checked. */
export function slotAt(slot: Slot, now: number): string {
  if (!Number.isFinite(now)) throw mustBe('once(): what clock gives', 'a number of milliseconds', now);
  const found: unknown = slot(now);
  if (typeof found !== 'string' || found === '') {
    throw mustBe('once(): what slot gives', 'a non-empty string', found);
  }
  return found;
}
