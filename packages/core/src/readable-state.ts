import { shownId } from './acquire/acquisition-id.ts';
import type { Holder, ResourceState, Waiter } from './backend/types.ts';

/** The state as users get it: it can be converted to JSON, which has no `bigint`, and its times are whole milliseconds. */
export function readableState(state: ResourceState): ResourceState {
  return {
    ...state,
    holders: state.holders.map(readableHolder),
    waiters: state.waiters.map(readableWaiter),
  };
}

export function readableHolder(holder: Holder): Holder {
  const { heldForMs, expiresInMs } = holder;
  const readable = {
    ...holder,
    // Who sees a lease on its way must not be able to adopt it (docs/spec.md §19.2).
    acquisitionId: shownId(holder.acquisitionId),
    ...(heldForMs !== undefined && { heldForMs: Math.floor(heldForMs) }),
    ...(expiresInMs !== undefined && { expiresInMs: Math.ceil(expiresInMs) }),
  };
  return Object.defineProperty(readable, 'toJSON', { value: () => withPlainToken(readable) });
}

function readableWaiter(waiter: Waiter): Waiter {
  const { waitingForMs } = waiter;
  return waitingForMs === undefined ? waiter : { ...waiter, waitingForMs: Math.floor(waitingForMs) };
}

/** Copies a value with its fencing token as a decimal string: beyond 2⁵³ a number would not be exact. */
export function withPlainToken<T extends { readonly fencingToken?: bigint | undefined }>(value: T): object {
  return { ...value, fencingToken: value.fencingToken?.toString() };
}
