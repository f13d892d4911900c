import type { LockBackend } from '@locks/core';

/** Breaks what core says to backends; what is no backend is left for core to refuse. */
export function onCalls(
  change: (backend: LockBackend) => LockBackend,
): (backend: LockBackend) => LockBackend {
  return (backend) => {
    const { attempt, awaitTurn = attempt } = (backend ?? {}) as Partial<LockBackend>;
    return typeof attempt === 'function' && typeof awaitTurn === 'function' ? change(backend) : backend;
  };
}

/** Ends with the call, and with nothing else. */
export function untilGivenUp({ signal }: { readonly signal?: AbortSignal }): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve(undefined);
    else signal?.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
