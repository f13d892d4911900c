import { LockError } from '@locks/core';
import {
  matching,
  milliseconds,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { type FaultName, FAULTS, type Strike } from './faults.ts';
import type { StoreModule } from './worker/worker-commands.ts';

export type { StoreModule } from './worker/worker-commands.ts';

/** What {@link prove} examines, and how. */
export interface ProveOptions {
  /** The module that opens the locks in every worker. */
  readonly store: StoreModule;
  /** For how long workers use locks while faults are made, in milliseconds. @defaultValue 300 000 */
  readonly runMs?: number | undefined;
  /** The whole number below 2 ** 32 that all faults are drawn from. @defaultValue a random one, which the proof names */
  readonly seed?: number | undefined;
  /** The faults that are made. @defaultValue all */
  readonly faults?: readonly FaultName[] | undefined;
  /** How many workers use locks at a time, from 2 to 16. @defaultValue 4 */
  readonly workers?: number | undefined;
  /** How long a hold lasts without a renewal, in milliseconds. @defaultValue 1 500, or the shortest of the backend if that is more */
  readonly ttlMs?: number | undefined;
  /** Whether the conformance suite runs first; it is for backends, not for the locks of another library. @defaultValue false */
  readonly suite?: boolean | undefined;
  /** Ends the run early; the proof tells of what was seen until then. @defaultValue none */
  readonly signal?: AbortSignal | undefined;
  /** Called after each fault. @defaultValue none */
  readonly onStrike?: ((strike: Strike) => void) | undefined;
}

const isFunction = matching(
  'a function',
  (value): value is (strike: Strike) => void => typeof value === 'function',
);
const STORE_TABLE = {
  module: text('the URL of a module', /^[a-z]+:./),
  argument: (value: unknown): unknown => value,
} satisfies OptionTable<StoreModule>;
const TABLE = {
  store: (value, what) => readOptions(what, value, STORE_TABLE),
  runMs: optional(milliseconds(1_000, 86_400_000), 300_000),
  seed: optional(wholeNumber(0, 2 ** 32 - 1)),
  faults: optional(
    matching(
      `a list of some of ${FAULTS.join(', ')}`,
      (value): value is readonly FaultName[] =>
        Array.isArray(value) &&
        value.length > 0 &&
        value.every((one) => (FAULTS as readonly unknown[]).includes(one)),
    ),
    FAULTS,
  ),
  workers: optional(wholeNumber(2, 16), 4),
  ttlMs: optional(wholeNumber(200, 60_000, 'milliseconds')),
  suite: optional(
    matching('true or false', (value): value is boolean => typeof value === 'boolean'),
    false,
  ),
  signal: optional(matching('an AbortSignal', (value): value is AbortSignal => value instanceof AbortSignal)),
  onStrike: optional(isFunction),
} satisfies OptionTable<ProveOptions>;

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function readProveOptions(options: ProveOptions) {
  const read = readOptions('prove()', options, TABLE);
  if (new Set(read.faults).size < read.faults.length)
    throw new LockError('LOCK_INVALID_ARGUMENT', 'prove(): faults must name each fault once.');
  return read;
}
