import { setTimeout as delay } from 'node:timers/promises';
import { invalidArgument, milliseconds, optional, type OptionTable, readOptions } from '@locks/core/backend';

/** The pauses of a campaign before it tries to lead again. All times are milliseconds. */
export interface BackoffOptions {
  /**
   * The pause after a leadership, and after the first failure in a row.
   * @defaultValue 1 000
   */
  readonly firstMs?: number | undefined;
  /**
   * The longest pause: it doubles with every further failure in a row, up to this limit.
   * @defaultValue 30 000
   */
  readonly longestMs?: number | undefined;
}

const LONGEST_MS = 3_600_000;
const TABLE = {
  firstMs: optional(milliseconds(0, LONGEST_MS)),
  longestMs: optional(milliseconds(0, LONGEST_MS)),
} satisfies OptionTable<BackoffOptions>;

/** The pauses of one campaign. */
export class BackOff {
  readonly #firstMs: number;
  readonly #longestMs: number;
  #failures = 0;

  constructor(firstMs: number, longestMs: number) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
  }

  failed(): void {
    this.#failures += 1;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  get pauseMs(): number {
    return Math.min(this.#longestMs, this.#firstMs * 2 ** Math.max(0, this.#failures - 1));
  }

  /**
   * Waits for the pause, or until the signal aborts. A random jitter takes off up to a fifth, so that candidates do not come
   * back together.
   */
  async pause(signal: AbortSignal): Promise<void> {
    await sleep(this.pauseMs * (1 - Math.random() / 5), signal);
  }
}

/** Reads the option `backoff`. */
export function readBackoff(value: unknown, what: string): BackOff {
  const { firstMs, longestMs } = readOptions(what, value, TABLE);
  const least = firstMs ?? Math.min(1_000, longestMs ?? 1_000);
  const most = longestMs ?? Math.max(30_000, least);
  if (least > most)
    throw invalidArgument(`${what}: firstMs, ${least}, must not be above longestMs, ${most}.`);
  return new BackOff(least, most);
}

/**
 * Resolves after `ms`, or as soon as the signal aborts.
 *
 * @param ref - whether the wait keeps the process alive
 */
export async function sleep(ms: number, signal: AbortSignal | undefined, ref = true): Promise<void> {
  try {
    await delay(ms, undefined, { ref, ...(signal && { signal }) });
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
}
