import { expect, test } from 'vitest';
import { CallDeadlines } from '../../src/call/call-deadlines.ts';
import { FailedAbandons } from '../../src/call/failed-abandons.ts';
import { requestOf } from '../../conformance/raw.ts';
import { CombinedClock } from '../../src/lifetime/clock.ts';
import { Protocol } from '../../src/protocol.ts';
import { pass, useFakeClock } from '../fixture.ts';
import { scriptedBackend } from '../scripted-backend.ts';

test('of abandons that fail without end the newest 10 000 are kept', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const clock = new CombinedClock();
  const failed = new FailedAbandons(backend, new Protocol(backend, clock), new CallDeadlines(clock));
  const requests = Array.from({ length: 10_003 }, () => requestOf('a', { kind: 'exclusive' }, 30_000));
  for (const request of requests) failed.add(request, clock.now() + request.ttlMs);
  await pass(1_000);
  while (backend.of('abandon').length < 10_000) await pass(0);
  await pass(2_000);
  const abandoned = backend.of('abandon').flatMap(({ ids }) => ids);
  expect(abandoned).toEqual(requests.slice(3).map(({ acquisitionId }) => acquisitionId));
});
