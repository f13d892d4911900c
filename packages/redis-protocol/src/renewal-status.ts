import type { RenewalStatus } from '@locks/core/backend';
import { renewalReplies } from './generated/renewal-replies.ts';

const HELD: RenewalStatus = { status: 'held' };
export const NOBODY_HOLDS: RenewalStatus = { status: 'lost', reason: 'force-released' };
export const ANOTHER_HOLDS: RenewalStatus = { status: 'lost', reason: 'taken-over' };

/** The reply of `renew`, `renew-shares` and `renew-part` for one lease: a number, or the error of its keys. */
export function decodeRenewalStatus(reply: unknown): RenewalStatus {
  switch (typeof reply === 'string' ? Number(reply || NaN) : reply) {
    case renewalReplies.nobodyHolds:
      return NOBODY_HOLDS;
    case renewalReplies.renewed:
      return HELD;
    case renewalReplies.anotherHolds:
      return ANOTHER_HOLDS;
    default:
      return { status: 'unknown', error: new Error(String(reply)) };
  }
}
