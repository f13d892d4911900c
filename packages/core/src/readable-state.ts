import type { Holder, ResourceState } from './backend/types.ts';

const TIMES = ['heldForMs', 'expiresInMs', 'waitingForMs'] as const;
type Times = Partial<Record<(typeof TIMES)[number], number>>;

/** The state as users get it: in whole milliseconds, and it can be converted to JSON, which has no `bigint`. */
export function readableState(state: ResourceState): ResourceState {
  const { holders, waiters } = state;
  return { ...state, holders: holders.map(readableHolder), waiters: waiters.map(inWholeMs) };
}

export function readableHolder(holder: Holder): Holder {
  const readable = inWholeMs(holder);
  return Object.defineProperty(readable, 'toJSON', { value: () => withPlainToken(readable) });
}

/** A copy: stores count in microseconds, or in floating-point numbers. */
function inWholeMs<T extends Times>(value: T): T {
  const times = TIMES.map((key) => [key, value[key]] as const).filter(([, ms]) => ms !== undefined);
  return { ...value, ...Object.fromEntries(times.map(([key, ms]) => [key, Math.floor(ms as number)])) };
}

/** The same with its fencing token as a decimal string: beyond 2⁵³ a number would not be exact. */
export function withPlainToken<T extends { readonly fencingToken?: bigint | undefined }>(value: T): object {
  return { ...value, fencingToken: value.fencingToken?.toString() };
}
