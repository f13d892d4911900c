import { asked } from '../acquire/failure.ts';
import type { Engine } from '../engine.ts';
import { checkTtl } from '../options.ts';
import type { Hold } from './hold.ts';
import { standingOf } from './keeper.ts';

/** A renewal that the holder asks for. */
export async function renewNow(engine: Engine, hold: Hold, ttlMs: number | undefined): Promise<void> {
  const { backend } = engine;
  const resource = hold.grant.request.resource;
  const ttl = ttlMs === undefined ? hold.ttlMs : checkTtl(ttlMs, backend.capabilities.ttl);
  const sentAt = engine.now();
  hold.ttlMs = ttl;
  const renewal = hold.renewalSent(ttl, sentAt, true);
  const limitMs = hold.deadline - sentAt;
  engine.keeper.reschedule(hold);
  const ended = (): void => {
    renewal.unclear = true;
  };
  const answer = await engine.ask('renew', resource, limitMs, (call) =>
    // It goes on when the caller is told that there was no answer.
    asked(() => backend.renew([{ grant: hold.grant, ttlMs: ttl }], call)).finally(ended),
  );
  const standing = standingOf(answer, 0);
  switch (standing.status) {
    case 'held':
      hold.renewed(renewal, standing.validForMs);
      engine.keeper.reschedule(hold);
      if (hold.lost !== undefined) throw hold.lost;
      return;
    case 'lost':
      hold.lose(standing.reason);
      if (hold.lost !== undefined) throw hold.lost;
      return;
    case 'unknown':
      throw engine.backendError('renew', resource, standing.error);
    default:
      return standing satisfies never;
  }
}
