import type { Harness } from '@locks/core/conformance';
import { machineNow } from '@locks/core/conformance/process';
import { canFindServer, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import type { LedTerm } from '../src/leader/commands.ts';
import {
  CandidateProcesses,
  type ElectionStore,
  firstTerm,
  SLACK_MS,
  TTL_MS,
} from '../src/leader/candidate-processes.ts';

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Harnesses of the conformance suite, and the server that each needs. */
const STORES = (
  [
    ['sqlite', undefined],
    ['redis-ioredis', 'redis'],
    ['postgres-lease', 'postgres'],
    ['kubernetes', 'kubernetes'],
  ] as const
).filter(([, server]) => server === undefined || (!missing.has(server) && canFindServer(server)));

describe.concurrent.each(STORES)('leaders of several processes on %s', { timeout: 60_000 }, (kind) => {
  let store: ElectionStore;
  let teardown: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    const { default: harness } = (await import(harnessUrl(kind).href)) as { default: Harness };
    const started = await harness.setup?.();
    teardown = started?.teardown;
    store = { harness: harness.module, env: started?.env ?? {} };
  });
  afterAll(() => teardown?.());

  it.concurrent('one that resigns hands over at once, and leads again in its turn', async () => {
    const ttlMs = 60_000;
    await using election = new CandidateProcesses('resign', store, ttlMs);
    const a = await election.join('a');
    await election.leads(a);
    const b = await election.join('b');
    await a.call.resign();
    const next = await election.leads(b);
    const former = await firstTerm(a);
    expect(former.reason).toBe('AbortError');
    expect(next.beganAt).toBeGreaterThan(former.endedAt as number);
    // The ttl is not waited for.
    expect(next.beganAt - (former.endedAt as number)).toBeLessThan(ttlMs / 4);
    await b.call.stop();
    const again = await election.leads(a, 2);
    expect(again.token).toBeGreaterThan(next.token as bigint);
    expect(next.token).toBeGreaterThan(former.token as bigint);
  });

  it.concurrent('after kill -9 of the leader the next one leads within the ttl', async () => {
    await using election = new CandidateProcesses('kill', store);
    const a = await election.join('a');
    const killed = await election.leads(a);
    const b = await election.join('b');
    const observer = await election.observe('observer');
    expect(await observer.call.leader('kill')).toMatchObject({ label: 'a', fencingToken: killed.token });
    const watched = observer.call.watch('kill', 2);
    await waitUntil(async () => (await observer.call.leader('kill'))?.label === 'a', { what: 'the leader' });
    const killedAt = machineNow();
    await a.kill();
    const next = await election.leads(b);
    expect(next.beganAt - killedAt).toBeLessThan(TTL_MS + SLACK_MS);
    expect(next.token).toBeGreaterThan(killed.token as bigint);
    await waitUntil(async () => (await observer.call.leader('kill'))?.label === 'b', {
      what: 'the observer to see the next leader',
    });
    // Between the two an observer may see that nobody leads.
    expect((await watched)[0]).toBe('a');
  });

  it.concurrent('a leader that was stopped (SIGSTOP) finds its leadership over, and is a candidate again', async () => {
    await using election = new CandidateProcesses('stop', store);
    const a = await election.join('a');
    const stopped = await election.leads(a);
    const b = await election.join('b');
    const stoppedAt = machineNow();
    a.freeze();
    const next = await election.leads(b);
    expect(next.beganAt - stoppedAt).toBeLessThan(TTL_MS + SLACK_MS);
    expect(next.token).toBeGreaterThan(stopped.token as bigint);
    a.thaw();
    // The first answer says so: no answer shows two leaders.
    expect((await firstTerm(a)).reason).toMatch(/^(expired|unconfirmed|taken-over|force-released)$/);
    expect(await a.call.leader('stop')).toMatchObject({ label: 'b' });
    await b.call.stop();
    expect((await election.leads(a, 2)).token).toBeGreaterThan(next.token as bigint);
  });

  it.concurrent('a leader whose event loop stood still for longer than its ttl reads that it is over', async () => {
    await using election = new CandidateProcesses('stall', store);
    const a = await election.join('a');
    await election.leads(a);
    const b = await election.join('b');
    const blocked = a.call.block(TTL_MS + 1_500);
    const next = await election.leads(b);
    expect(await blocked).toEqual({ aborted: true, validForMs: 0 });
    expect((await firstTerm(a)).reason).toMatch(/^(expired|unconfirmed)$/);
    await b.call.stop();
    expect((await election.leads(a, 2)).token).toBeGreaterThan(next.token as bigint);
  });

  it.concurrent('leaders that resign at random never lead at once', async () => {
    await using election = new CandidateProcesses('random', store);
    const all = await Promise.all(['a', 'b', 'c'].map((label) => election.join(label)));
    const terms = async () => (await Promise.all(all.map(({ call }) => call.terms()))).flat();
    await waitUntil(
      async () => {
        await Promise.all(all.map(({ call }) => call.resign()));
        return (await terms()).length > 12;
      },
      { what: 'a dozen leaderships', timeoutMs: 40_000, everyMs: 30 },
    );
    await Promise.all(all.map(({ call }) => call.stop()));
    const ordered = (await terms()).toSorted((one, other) => one.beganAt - other.beganAt);
    for (const [index, term] of ordered.slice(1).entries()) {
      const before = ordered[index] as LedTerm;
      expect(term.beganAt).toBeGreaterThan(before.endedAt as number);
      expect(term.token).toBeGreaterThan(before.token as bigint);
    }
  });
});
