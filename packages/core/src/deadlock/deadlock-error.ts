import { type CircleMember, type LockError, quote } from '../errors.ts';
import type { ManagerCore } from '../manager-core.ts';

/** The error of the wait that gives up for a circle over several processes, or managers (docs/spec.md §5.10). */
export function deadlockError(
  core: ManagerCore,
  resource: string,
  circle: readonly CircleMember[],
): LockError {
  const texts = circle.map(({ name, label, waitsFor }, index) => {
    const who = index === 0 ? 'this code' : (label ?? 'a holder without a label');
    return `${who} holds ${quote(name)} and waits for ${quote(waitsFor)}`;
  });
  return core.error(
    'LOCK_DEADLOCK',
    `Waiting for ${quote(resource)} would never end: ${texts.join('; ')}. This wait is the youngest of them, and gave up. Take locks in ` +
      'one order everywhere, or together with locks.all().',
    resource,
    { circle },
  );
}
