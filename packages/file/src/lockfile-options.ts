import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { matching, oneOf, optional, type OptionTable, readClient, readOptions } from '@locks/core/backend';
import { LockfileError } from './lockfile-error.ts';
import { isPath } from './options.ts';

/** How often `lock` tries again, and when: after `minTimeout` × `factor` to the power of the tries before. */
export interface LockfileRetries {
  /** How often it tries again. @defaultValue 10 */
  readonly retries?: number;
  /** What each pause is multiplied by for the next one. @defaultValue 2 */
  readonly factor?: number;
  /** The first pause, in milliseconds. @defaultValue 1 000 */
  readonly minTimeout?: number;
  /** The longest pause, in milliseconds. @defaultValue no limit */
  readonly maxTimeout?: number;
  /** Whether each pause is multiplied by a random number from 1 to 2. @defaultValue false */
  readonly randomize?: boolean;
  /** Whether it tries until it succeeds. @defaultValue false */
  readonly forever?: boolean;
}

/** The options of `unlock` and `unlockSync`. */
export interface UnlockOptions {
  /** Whether symbolic links in the path are followed: then the file must exist. @defaultValue true */
  readonly realpath?: boolean;
  /** The directory that is the lock. @defaultValue the path of the file, and `.lock` */
  readonly lockfilePath?: string;
}

/** The options of `check` and `checkSync`. */
export interface CheckOptions extends UnlockOptions {
  /** The time in milliseconds after which a holder that has not written counts as dead; 2 000 at least. @defaultValue 10 000 */
  readonly stale?: number;
}

/** The options of `lock` and `lockSync`. */
export interface LockfileOptions extends CheckOptions {
  /** How often the holder writes, in milliseconds: 1 000 at least, and half of `stale` at most. @defaultValue half of `stale` */
  readonly update?: number;
  /** How many times `lock` tries again, or when; the pauses count in milliseconds. @defaultValue 0 */
  readonly retries?: number | LockfileRetries;
  /** Called once when the lock was lost. @defaultValue a function that throws the error, which ends the process */
  readonly onCompromised?: (error: Error) => unknown;
}

const number = matching(
  'a number, 0 or more',
  (value: unknown): value is number => Number(value) >= 0 && typeof value === 'number',
);
const flag = oneOf(true, false);
const path = matching('a path', isPath);

const RETRIES = {
  retries: optional(number, 10),
  factor: optional(number, 2),
  minTimeout: optional(number, 1_000),
  maxTimeout: optional(number, Infinity),
  randomize: optional(flag, false),
  forever: optional(flag, false),
} satisfies OptionTable<LockfileRetries>;
const UNLOCK = {
  realpath: optional(flag, true),
  lockfilePath: optional(path),
} satisfies OptionTable<UnlockOptions>;
const CHECK = { ...UNLOCK, stale: optional(number, 10_000) } satisfies OptionTable<CheckOptions>;
const LOCK = {
  ...CHECK,
  update: optional(number),
  retries: optional(
    matching(
      'a number, 0 or more, or an object',
      (value: unknown): value is number | LockfileRetries =>
        typeof value === 'object' || (typeof value === 'number' && value >= 0),
    ),
    0,
  ),
  onCompromised: optional(
    matching(
      'a function',
      (value: unknown): value is (error: Error) => unknown => typeof value === 'function',
    ),
    (error: Error): never => {
      throw error;
    },
  ),
} satisfies OptionTable<LockfileOptions>;

const ELSEWHERE = { fs: 'the file system of Node: leave the option out' };
const LEAST_STALE_MS = 2_000;
const LEAST_UPDATE_MS = 1_000;

interface Place {
  /** The file without symbolic links, unless they are not followed. */
  readonly file: string;
  readonly lockfilePath: string | undefined;
}

export interface CheckedLock extends Place {
  readonly staleMs: number;
  readonly updateMs: number;
  readonly pauses: () => Iterable<number>;
  readonly onCompromised: (error: Error) => unknown;
}

export function readUnlock(caller: string, file: unknown, options: UnlockOptions | undefined): Place {
  return placeOf(caller, file, readOptions(caller, options, UNLOCK, ELSEWHERE));
}

export function readCheck(
  caller: string,
  file: unknown,
  options: CheckOptions | undefined,
): Place & { readonly staleMs: number } {
  const read = readOptions(caller, options, CHECK, ELSEWHERE);
  return { ...placeOf(caller, file, read), staleMs: Math.max(read.stale, LEAST_STALE_MS) };
}

export function readLock(
  caller: string,
  file: unknown,
  options: LockfileOptions | undefined,
  isSync: boolean,
): CheckedLock {
  const read = readOptions(caller, options, LOCK, ELSEWHERE);
  const given = typeof read.retries === 'number' ? { retries: read.retries } : read.retries;
  const retries = readOptions(`${caller}: retries`, given, RETRIES);
  if (isSync && (retries.retries > 0 || retries.forever))
    throw new LockfileError('ESYNC', `${caller} does not wait: leave \`retries\` out, or use lock()`);
  const staleMs = Math.max(read.stale, LEAST_STALE_MS);
  const updateMs = Math.max(Math.min(read.update ?? staleMs / 2, staleMs / 2), LEAST_UPDATE_MS);
  const { onCompromised } = read;
  return {
    ...placeOf(caller, file, read),
    staleMs,
    updateMs,
    onCompromised,
    pauses: () => pausesOf(retries),
  };
}

function* pausesOf(given: Required<LockfileRetries>): Generator<number> {
  const { retries, factor, minTimeout, maxTimeout, randomize, forever } = given;
  for (let tries = 0; forever || tries < retries; tries += 1)
    yield Math.min((randomize ? 1 + Math.random() : 1) * minTimeout * factor ** tries, maxTimeout);
}

function placeOf(
  caller: string,
  file: unknown,
  { realpath, lockfilePath }: { readonly realpath: boolean; readonly lockfilePath: string | undefined },
): Place {
  const given = readClient(caller, 'file', file, 'the path of a file', isPath);
  return {
    file: realpath ? realpathSync(given) : resolve(given),
    lockfilePath: lockfilePath === undefined ? undefined : resolve(lockfilePath),
  };
}
