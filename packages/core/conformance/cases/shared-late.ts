import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { needs, shared } from '../needs.ts';
import { EXCLUSIVE, grab, holdersOf, openCall, requestOf, SHARED } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';

const HELD_MS = 120_000;

/** Cases for a store that counts shares without naming them: there one release too many ends the share of another. */
export const sharedLateCases: readonly ConformanceCase[] = [
  {
    id: 'shared/a-late-release-ends-no-other-share',
    clause: '§3.1',
    title:
      'late and repeated releases, and an abandon of a share that was never taken, do not end the share of a reader, also of the same client',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const [one, two, other] = [await context.backend(), await context.backend(), await context.backend()];
      const living = await grab(two, name, HELD_MS, SHARED);
      const remains = async (what: string): Promise<void> => {
        for (const backend of [other, two]) {
          const writer = requestOf(name, EXCLUSIVE, HELD_MS);
          const attempt = await backend.attempt(writer, false, openCall);
          await backend.abandon(writer, openCall);
          if (attempt.status === 'granted')
            throw new SafetyViolation(`After ${what} a writer was granted beside a reader.`);
        }
        assert.deepEqual(await holdersOf(other, name), [living.request.acquisitionId], `after ${what}`);
      };
      // The calls come from another client first, then over the reader's own connection.
      for (const backend of [one, two]) {
        const left = await grab(backend, name, HELD_MS, SHARED);
        const given = await grab(backend, name, HELD_MS, SHARED);
        assert.equal(await backend.release(left, openCall), 'released');
        assert.notEqual(await backend.release(left, openCall), 'released', 'a share was released twice');
        await backend.abandon(left.request, openCall);
        await backend.abandon(given.request, openCall);
        assert.notEqual(await backend.release(given, openCall), 'released');
        await backend.abandon(given.request, openCall);
        await remains('a share that was released twice');
        await backend.abandon(requestOf(name, SHARED, HELD_MS), openCall);
        await remains('an abandon of a share that was never taken');
        if (backend.capabilities.tenure === 'session') continue;
        const stale = await grab(backend, name, ttlMs, SHARED);
        await context.until(
          'a share expired',
          async () => (await holdersOf(other, name)).length === 1,
          ttlMs + idleGapMs + 5 * slackMs,
        );
        assert.notEqual(await backend.release(stale, openCall), 'released');
        await backend.abandon(stale.request, openCall);
        await remains('an expired share was released');
      }
      assert.equal(await two.release(living, openCall), 'released');
      const writer = await grab(one, name, HELD_MS, EXCLUSIVE);
      await one.release(writer, openCall);
    },
  },
];
