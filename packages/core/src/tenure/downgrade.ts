import type { Engine } from '../engine.ts';
import { quote } from '../errors.ts';
import type { Hold } from './hold.ts';
import { standingOf } from './keeper.ts';

/** A call that gets no answer is repeated, but not for longer than this. */
const DOWNGRADE_MS = 1_000;

/**
 * Turns an exclusive hold into a shared one (docs/spec.md §15.4). One that is shared already stays as it is. The caller
 * looks whether it is held still: it may have been lost or released meanwhile.
 *
 * @throws LockError `LOCK_BACKEND`, `LOCK_REENTRANT`, `LOCK_UNSUPPORTED`
 */
export async function downgrade(engine: Engine, hold: Hold): Promise<void> {
  const { backend } = engine;
  const { resource, mode } = hold.grant.request;
  if (mode.kind === 'shared') return;
  const { downgrade: ask } = backend;
  if (mode.kind === 'permit' || ask === undefined) throw engine.unsupported('downgrade()', resource);
  if (hold.count > 1) {
    throw engine.error(
      'LOCK_REENTRANT',
      `The lease on ${quote(resource)} has ${hold.count} handles; those who re-entered it count on being alone. ` +
        'Release them before downgrade().',
      resource,
    );
  }
  // From here on nobody enters who counts on being alone.
  hold.mayBeShared = true;
  const limitMs = Math.min(hold.deadline - engine.now(), DOWNGRADE_MS);
  const answer = await engine.ask('downgrade', resource, limitMs, (call) =>
    ask.call(backend, hold.grant, call),
  );
  const standing = standingOf([answer], 0);
  switch (standing.status) {
    case 'held':
      hold.grant = { ...hold.grant, request: { ...hold.grant.request, mode: { kind: 'shared' } } };
      return;
    case 'lost':
      hold.lose(standing.reason);
      return;
    case 'unknown':
      throw engine.backendError('downgrade', resource, standing.error);
    default:
      return standing satisfies never;
  }
}
