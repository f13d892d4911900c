/**
 * A signal that aborts with one of the signals, whichever is first, or after `maxRunMs` milliseconds, until `end` is called.
 */
export function runSignal(
  signals: readonly (AbortSignal | undefined)[],
  maxRunMs?: number,
): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const ends: (() => void)[] = [];
  const timeout = maxRunMs === undefined ? undefined : AbortSignal.timeout(maxRunMs);
  for (const signal of [...signals, timeout]) {
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
