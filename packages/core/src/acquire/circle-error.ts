import type { LockMode } from '../backend/types.ts';
import { type LockError, quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { CircleLink } from '../scope/lease-waits.ts';

/** The error of a wait that would close a circle: the code waits for itself (docs/spec.md §5.5), or over others (§5.9). */
export function circleError(
  core: ManagerCore,
  resource: string,
  mode: LockMode,
  circle: readonly CircleLink[],
): LockError {
  const [own, ...others] = circle as [CircleLink, ...CircleLink[]];
  if (others.length === 0) return selfWaitError(core, resource, own.lease.grant.request.mode, mode);
  const members = circle.map(({ lease, waitsFor }) => {
    const { resource: name, label } = lease.grant.request;
    return { name, label, waitsFor };
  });
  const texts = members.map(({ name, label, waitsFor }, index) => {
    const who =
      index === 0
        ? 'this code'
        : `other code of this process${label === undefined ? '' : ` (${quote(label)})`}`;
    return `${who} holds ${quote(name)} and waits for ${quote(waitsFor)}`;
  });
  return core.error(
    'LOCK_DEADLOCK',
    `Waiting for ${quote(resource)} would never end: ${texts.join('; ')}. Take locks in one order everywhere, or together with ` +
      'locks.all(). Work that a run() does not await belongs into locks.detached(work).',
    resource,
    { circle: members },
  );
}

function selfWaitError(core: ManagerCore, resource: string, held: LockMode, wanted: LockMode): LockError {
  return core.error(
    'LOCK_REENTRANT',
    `This code would wait for itself: it runs inside a run() that holds ${quote(resource)}. ${advice(held, wanted)} ` +
      'Work that the run() does not await belongs into locks.detached(work).',
    resource,
  );
}

function advice(held: LockMode, wanted: LockMode): string {
  if (held.kind === 'permit') return 'Take as many permits at once as the whole work needs.';
  if (held.kind === 'shared' && wanted.kind === 'exclusive')
    return 'A shared lease is never upgraded: release it first, or take the exclusive lock from the start.';
  return 'Pass { within: lease } with the lease of that run(), or make the lock with { reentrant: true } and use run().';
}
