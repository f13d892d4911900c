import type { Holder, ResourceState } from './backend/types.ts';

/** The state as users get it: it can be converted to JSON, which has no `bigint`. */
export function readableState(state: ResourceState): ResourceState {
  return { ...state, holders: state.holders.map(readableHolder) };
}

export function readableHolder(holder: Holder): Holder {
  return Object.defineProperty({ ...holder }, 'toJSON', { value: () => withPlainToken(holder) });
}

/** The same with its fencing token as a decimal string: beyond 2⁵³ a number would not be exact. */
export function withPlainToken<T extends { readonly fencingToken?: bigint | undefined }>(value: T): object {
  return { ...value, fencingToken: value.fencingToken?.toString() };
}
