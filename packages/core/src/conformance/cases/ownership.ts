import assert from 'node:assert/strict';
import { type ConformanceCase, needsLeaseTenure } from '../case.ts';

export const ownershipCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/stale-holder-cannot-release',
    clause: '§3.1',
    title: 'a holder whose lease expired and was taken by another cannot release it',
    missing: needsLeaseTenure,
    async run(stage) {
      const name = stage.name();
      const { ttlMs } = stage.timing;
      const stale = await stage.backend();
      const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
      const request = { resource: name, acquisitionId: 'stale', mode: { kind: 'exclusive' }, ttlMs } as const;
      const attempt = await stale.attempt(request, false, call);
      assert.equal(attempt.status, 'granted');
      const { locks } = await stage.client();
      const successor = await locks.lock(name).acquire();
      if (attempt.status === 'granted') assert.equal(await stale.release(attempt.grant, call), 'not-held');
      assert.equal((await locks.inspect(name)).holders[0]?.acquisitionId, successor.acquisitionId);
      await successor.release();
    },
  },
];
