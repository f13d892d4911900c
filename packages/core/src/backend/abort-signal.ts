import { mustBe } from '../errors.ts';

/** The signals that stand for objects with less than a signal has. */
const standIns = new WeakMap<object, AbortSignal>();

/**
 * Reads the option `signal`. An object with `aborted` and `addEventListener` alone, as old polyfills and some frameworks give it, is
 * followed by a signal that has all that a signal has.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function abortSignal(value: unknown, what: string): AbortSignal {
  const given = value as Partial<AbortSignal> | null;
  if (typeof given?.aborted !== 'boolean' || typeof given.addEventListener !== 'function')
    throw mustBe(what, 'an AbortSignal', value);
  if (typeof given.throwIfAborted === 'function') return given as AbortSignal;
  return standIns.get(given) ?? standInFor(given as AbortSignal);
}

function standInFor(given: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(given.reason);
  if (given.aborted) abort();
  else given.addEventListener('abort', abort, { once: true });
  standIns.set(given, controller.signal);
  return controller.signal;
}
