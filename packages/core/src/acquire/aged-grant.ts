import type { Grant, RenewItem } from '../backend/types.ts';
import { type CallContext, dropped } from '../call/call-context.ts';
import type { ManagerCore } from '../manager-core.ts';
import { endOf, type Validity } from '../lifetime/lease-state.ts';
import { renewalStatusOf } from '../lifetime/renewal-status.ts';

/** Share of its ttl that a lease must have left at delivery; with less, it is renewed first. */
const SHARE_AT_GRANT = 2 / 3;

/**
 * Whether a granted lease has too little time left: the answer came late, or a message granted it. A message proves nothing about
 * time: the lease that it grants after a wait may be old, or look so, even over. One that is over without a wait is over.
 */
export function isAged(
  { backend, clock }: ManagerCore,
  grant: Grant,
  ttlMs: number,
  hasWaited: boolean,
): boolean {
  if (backend.capabilities.tenure === 'session') return false;
  const { countedFrom, validForMs = ttlMs } = (grant ?? {}) as Partial<Grant>;
  if (countedFrom === undefined) return false;
  const leftMs = endOf(countedFrom, validForMs) - clock.now();
  return leftMs < ttlMs * SHARE_AT_GRANT && (hasWaited || leftMs > 0);
}

/**
 * Renews aged leases before they are delivered: their holder gets the whole ttl, counted from here (docs/spec.md §1.4). Resolves with
 * their validity, or with `undefined` where one of them is of no use. The caller looks whether `call` was interrupted.
 *
 * @param hasWaited - whether the grants may be older than they look: then they are of use only if the renewal is confirmed. Others keep what
 * they have where nothing is known of the renewal.
 */
export async function renewAged(
  { protocol, clock }: ManagerCore,
  items: readonly RenewItem[],
  call: CallContext,
  hasWaited: boolean,
): Promise<readonly Validity[] | undefined> {
  const countedFrom = clock.now();
  // The renewal does not end at the acquire's deadline: reaching that one means a wait in vain, not a failure of the store
  // (docs/spec.md §7.5).
  const deadline = countedFrom + Math.max(...items.map(({ ttlMs }) => ttlMs));
  const renew = () => protocol.calls.renew(items, { now: () => clock.now(), deadline });
  const answer = await call.answerOf(renew, dropped);
  const validities: Validity[] = [];
  for (const [index, { grant, ttlMs }] of items.entries()) {
    const renewalStatus = renewalStatusOf(answer, index);
    if (renewalStatus.status === 'held')
      validities.push({ countedFrom, validForMs: renewalStatus.validForMs ?? ttlMs });
    else if (renewalStatus.status === 'unknown' && !hasWaited) validities.push(grant);
    else return undefined;
  }
  return validities;
}
