import { domException } from './exceptions.ts';
import type { WebLock, WebLockMode } from './types.ts';

/** The arguments of `request` after their conversion by Web IDL. */
export interface RequestArguments {
  readonly name: string;
  readonly mode: WebLockMode;
  readonly ifAvailable: boolean;
  readonly steal: boolean;
  readonly signal: AbortSignal | undefined;
  readonly callback: (lock: WebLock | null) => unknown;
}

/**
 * Converts the passed arguments as Web IDL does: from left to right, the members of the dictionary in the order of their names,
 * each read once. Arguments beyond the third are ignored.
 *
 * @throws TypeError, or whatever a getter or `toString` of the caller throws
 */
export function convertArguments(passed: readonly unknown[]): RequestArguments {
  if (passed.length < 2) {
    throw new TypeError(
      `request() takes a name and a callback; ${passed.length} of 2 arguments were passed.`,
    );
  }
  const name = asString(passed[0]);
  const options = asOptions(passed.length === 2 ? undefined : passed[1]);
  const callback = passed.length === 2 ? passed[1] : passed[2];
  if (typeof callback !== 'function') throw new TypeError('The callback of request() must be a function.');
  return { name, ...options, callback: callback as RequestArguments['callback'] };
}

/**
 * The checks of the specification's `request()` steps, in their order.
 *
 * @throws DOMException `NotSupportedError`, or the reason of a signal that is aborted already
 */
export function checkRequest({ name, mode, ifAvailable, steal, signal }: RequestArguments): void {
  if (name.startsWith('-')) throw notSupported('Names that start with "-" are reserved.');
  if (steal && ifAvailable) throw notSupported('steal and ifAvailable exclude each other.');
  if (steal && mode !== 'exclusive') throw notSupported('Only an exclusive lock can be stolen.');
  if (signal === undefined) return;
  if (steal || ifAvailable) throw notSupported('A signal goes with neither steal nor ifAvailable.');
  signal.throwIfAborted();
}

function asOptions(value: unknown): Omit<RequestArguments, 'name' | 'callback'> {
  if (value !== undefined && value !== null && typeof value !== 'object' && typeof value !== 'function') {
    throw new TypeError('The options of request() must be an object.');
  }
  const given = (value ?? {}) as Record<'ifAvailable' | 'mode' | 'signal' | 'steal', unknown>;
  const ifAvailable = Boolean(given.ifAvailable);
  const mode = asMode(given.mode);
  const signal = asSignal(given.signal);
  return { ifAvailable, mode, signal, steal: Boolean(given.steal) };
}

function asMode(value: unknown): WebLockMode {
  if (value === undefined) return 'exclusive';
  const mode = asString(value);
  if (mode === 'exclusive' || mode === 'shared') return mode;
  throw new TypeError(`mode must be "exclusive" or "shared", not ${JSON.stringify(mode)}.`);
}

/** A DOMString: any JavaScript string, lone surrogates included. A symbol is a TypeError. */
function asString(value: unknown): string {
  return typeof value === 'symbol' ? `${value as unknown as string}` : String(value);
}

const isAborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')?.get as () => boolean;

function asSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  try {
    // The getter itself knows a real signal from an object that only looks like one.
    Reflect.apply(isAborted, value, []);
  } catch {
    throw new TypeError('signal must be an AbortSignal.');
  }
  return value as AbortSignal;
}

function notSupported(message: string): DOMException {
  return domException('NotSupportedError', message);
}
