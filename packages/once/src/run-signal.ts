import type { BaseLease } from '@locks/core';

/** A signal that aborts with the lease or with the user's signal, whichever is first, until `end` is called. */
export function runSignal(
  lease: BaseLease,
  user: AbortSignal | undefined,
): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const ends: (() => void)[] = [];
  for (const signal of [lease.signal, user]) {
    if (signal === undefined) continue;
    const onAbort = (): void => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    ends.push(() => signal.removeEventListener('abort', onAbort));
  }
  return {
    signal: controller.signal,
    end() {
      for (const end of ends) end();
    },
  };
}
