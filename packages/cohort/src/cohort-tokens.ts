import type { Grant, Holder, ResourceState } from '@locks/core/backend';

/** The low bits of a fencing token count the turns of a lease; the others are the token of the store. */
const TURN_BITS = 8n;
/** The number of turns that the low bits of a token can count. */
export const MOST_TURNS = 256;

/**
 * The token of one turn. It rises over all processes: within a lease the turns rise, and the next lease has a higher token of
 * the store (docs/spec.md §6.1, §18.5).
 */
export function turnToken(storeToken: bigint | undefined, turn: number): bigint | undefined {
  return storeToken === undefined ? undefined : (storeToken << TURN_BITS) | BigInt(turn);
}

/** The grant as users of this backend see it: with the token of the first turn. */
export function withTurnToken(grant: Grant): Grant {
  return { ...replaceToken(grant, turnToken(grant.fencingToken, 0)), atStore: grant };
}

/** The grant as the store gave it; `undefined` for one that this backend did not give. */
export function atStore({ atStore: grant, request }: Grant): Grant | undefined {
  // Core copies a grant with another request after a downgrade.
  return grant === undefined || grant.request === request ? grant : { ...grant, request };
}

/** The state as users of this backend see it. The waiters are left out: the store knows only some of them. */
export function stateWithTurnTokens(state: ResourceState): ResourceState {
  return { ...state, holders: holdersWithTurnTokens(state.holders), waiters: [] };
}

export function holdersWithTurnTokens(holders: readonly Holder[]): readonly Holder[] {
  return holders.map((holder) => replaceToken(holder, turnToken(holder.fencingToken, 0)));
}

function replaceToken<T extends { readonly fencingToken?: bigint }>(
  of: T,
  fencingToken: bigint | undefined,
): T {
  return fencingToken === undefined ? of : { ...of, fencingToken };
}
