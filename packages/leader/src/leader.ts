import { type BaseLease, type Holder, isLockError, type LockManager } from '@locks/core';
import { abortSignal, milliseconds, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { sleep } from './back-off.ts';

/** A leader as the store knows it. In JSON the fencing token is a decimal string. */
export interface LeaderInfo {
  /** The identity of the leadership: another one after every change, also where the same process leads again. */
  readonly acquisitionId: string;
  /** The option `label` of `lead`, or `host:pid`. */
  readonly label: string | undefined;
  /** The fencing token of the leadership; absent where the backend has none. */
  readonly fencingToken?: bigint | undefined;
  /**
   * The time since the start of the leadership, in milliseconds by the clock of the store; absent where the store does not
   * know.
   */
  readonly leadingForMs?: number | undefined;
  /** The time until the leadership ends unless it is renewed, in milliseconds; absent where a session decides. */
  readonly expiresInMs?: number | undefined;
}

/** Options of `watch` of an `Election`. */
export interface WatchLeaderOptions {
  /**
   * The pause between two questions to the store, in milliseconds; 10 or more.
   * @defaultValue 1 000
   */
  readonly pollMs?: number | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

export const readPollMs = milliseconds(10, 86_400_000);
const TABLE = {
  pollMs: optional(readPollMs, 1_000),
  signal: optional(abortSignal),
} satisfies OptionTable<WatchLeaderOptions>;

/** Gives the leader of this moment. */
export async function leader(
  locks: Pick<LockManager<BaseLease>, 'inspect' | 'lock'>,
  name: string,
): Promise<LeaderInfo | undefined> {
  const { holders } = await locks.inspect(name);
  const holder = holders.find(({ mode }) => mode.kind === 'exclusive');
  return holder && infoOf(holder);
}

/** Iterates over the leaders: `watch` of `Election` has the promises. */
export function watch(
  locks: Pick<LockManager<BaseLease>, 'inspect' | 'lock'>,
  name: string,
  options: WatchLeaderOptions | undefined,
): AsyncIterable<LeaderInfo | undefined> {
  const { pollMs, signal } = readOptions('watch()', options, TABLE);
  return changes(locks, name, pollMs, signal, true);
}

/** @param ref - whether the waits keep the process alive */
export async function* changes(
  locks: Pick<LockManager<BaseLease>, 'inspect' | 'lock'>,
  name: string,
  pollMs: number,
  signal: AbortSignal | undefined,
  ref: boolean,
): AsyncGenerator<LeaderInfo | undefined, void, void> {
  let seen: LeaderInfo | undefined | null = null;
  while (!signal?.aborted) {
    const answer = await untilAborted(ask(locks, name), signal);
    if (answer !== undefined && (seen === null || answer.leader?.acquisitionId !== seen?.acquisitionId)) {
      seen = answer.leader;
      yield seen;
    }
    await sleep(pollMs, signal, ref);
  }
}

/** Asks the store; gives `undefined` where it gave no answer. */
async function ask(
  locks: Pick<LockManager<BaseLease>, 'inspect' | 'lock'>,
  name: string,
): Promise<{ readonly leader: LeaderInfo | undefined } | undefined> {
  try {
    return { leader: await leader(locks, name) };
  } catch (error) {
    if (isLockError(error, 'LOCK_BACKEND')) return undefined;
    throw error;
  }
}

/** Waits for an answer of the store; gives `undefined` as soon as the signal aborts, and ignores a later answer. */
async function untilAborted<T>(
  answered: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  if (signal === undefined) return answered;
  let stop: (() => void) | undefined;
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([answered, aborted]);
  } finally {
    if (stop !== undefined) signal.removeEventListener('abort', stop);
  }
}

function infoOf({ acquisitionId, label, fencingToken, heldForMs, expiresInMs }: Holder): LeaderInfo {
  const info = { acquisitionId, label, fencingToken, leadingForMs: heldForMs, expiresInMs };
  const toJSON = (): object => ({ ...info, fencingToken: fencingToken?.toString() });
  return Object.defineProperty({ ...info }, 'toJSON', { value: toJSON });
}
