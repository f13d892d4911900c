import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** Ends the sentence "Waited in vain for …". */
  readonly what: string;
  /** @defaultValue 20 000 */
  readonly timeoutMs?: number;
  /** @defaultValue 10 */
  readonly everyMs?: number;
}

/**
 * Polls `condition` until its result is truthy, and returns that. A condition that throws counts as not yet met;
 * its last error is the cause of the final one.
 */
export async function waitUntil<T>(
  condition: () => T | Promise<T>,
  { what, timeoutMs = 20_000, everyMs = 10 }: WaitOptions,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const result = await condition();
      if (result) return result;
      cause = undefined;
    } catch (error) {
      if (error instanceof GiveUp) throw error.cause;
      cause = error;
    }
    if (performance.now() >= deadline) {
      throw new Error(`Waited in vain for ${what} (${timeoutMs} ms).`, { cause });
    }
    await sleep(everyMs);
  }
}

/** Thrown by a condition that can no longer be met; `waitUntil` rejects with its cause at once. */
export class GiveUp extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}
