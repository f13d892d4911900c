import type { LockBackend } from '@locks/core';

/** Changes the calls of core to backends; an argument that is no backend is left for core to refuse. */
export function onCalls(
  change: (backend: LockBackend) => LockBackend,
): (backend: LockBackend) => LockBackend {
  return (backend) => {
    const { attempt, awaitTurn = attempt } = (backend ?? {}) as Partial<LockBackend>;
    return typeof attempt === 'function' && typeof awaitTurn === 'function' ? change(backend) : backend;
  };
}

/** Resolves when the call is aborted, and never otherwise. */
export function untilGivenUp({ signal }: { readonly signal?: AbortSignal }): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve(undefined);
    else signal?.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
