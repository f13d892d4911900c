import { askRenewalStatus } from './ask-renewal-status.ts';
import { quote } from '../errors.ts';
import type { RenewalStatus } from '../backend/types.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';

const DOWNGRADE_MS = 1_000;

/**
 * Turns an exclusive lease into a shared one (docs/spec.md §15.4); one that is shared already stays as it is. The caller
 * checks afterwards that the lease is still held: it may have been lost or released meanwhile.
 *
 * @throws LockError `LOCK_BACKEND`, `LOCK_REENTRANT`, `LOCK_UNSUPPORTED`
 */
export async function downgrade(core: ManagerCore, lease: LeaseState): Promise<void> {
  const { backend } = core;
  const { resource, mode } = lease.grant.request;
  if (mode.kind === 'shared') return;
  if (mode.kind === 'permit' || backend.downgrade === undefined)
    throw core.unsupported('downgrade()', resource);
  if (lease.holdCount > 1) {
    throw core.error(
      'LOCK_REENTRANT',
      `The lease on ${quote(resource)} has ${lease.holdCount} handles; code that re-entered it counts on being alone. ` +
        'Release them before downgrade().',
      resource,
    );
  }
  // Exclusive re-entries are refused from here on.
  lease.mayBeShared = true;
  const limitMs = Math.min(lease.deadline - core.now(), DOWNGRADE_MS);
  const held = await askRenewalStatus(core, lease, 'downgrade', limitMs, async (call) => [
    (await core.protocol.calls.downgrade?.(lease.grant, call)) as RenewalStatus,
  ]);
  if (held === undefined) return;
  lease.grant = { ...lease.grant, request: { ...lease.grant.request, mode: { kind: 'shared' } } };
}
