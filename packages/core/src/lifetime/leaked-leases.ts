import { quote } from '../errors.ts';
import type { LeaseState } from './lease-state.ts';

/** The owners whose leak was told: one in a loop would fill the log. */
const told = new WeakSet<object>();

const leaks = new FinalizationRegistry<LeaseState>((lease) => {
  if (lease.released || lease.lost !== undefined || told.has(lease.owner)) return;
  told.add(lease.owner);
  const name = quote(lease.grant.request.resource);
  process.emitWarning(
    `The lease on ${name} is renewed for as long as this process lives, since nobody can release it: its object was garbage-collected. ` +
      'Await acquire(), keep what it gives, and release it; or use run(). Further leases of this lock manager are not named.',
    { code: 'LOCKS_LEAKED_LEASE' },
  );
});

/**
 * Watches whether the holder of a lease still has its handle. Called at the first renewal: a lease that is released before costs nothing,
 * and the state of the lease references the handle no longer.
 */
export function watchHandle(lease: LeaseState): void {
  const { handle } = lease;
  if (handle === undefined) return;
  lease.handle = undefined;
  leaks.register(handle, lease);
}
