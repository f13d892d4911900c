import { machineNow } from '@locks/core/conformance/process';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harnessUrl } from '../src/harness-names.ts';
import {
  CandidateProcesses,
  type ElectionStore,
  firstTerm,
  SLACK_MS,
  TTL_MS,
} from '../src/leader/candidate-processes.ts';

describe('an election whose Redis server is away', { timeout: 60_000 }, () => {
  let server: RedisServer;
  let store: ElectionStore;
  beforeAll(async () => {
    server = await startRedis();

    const address = JSON.stringify({ kind: 'standalone', url: server.url });
    store = { harness: harnessUrl('redis-ioredis').href, env: { LOCKS_CONFORMANCE_REDIS: address } };
  });
  afterAll(() => server?.stop());

  it.each(['paused', 'killed'] as const)(
    '(%s) ends the leadership before another one begins; when it is back, one leads again',
    async (how) => {
      await using election = new CandidateProcesses(how, store);
      const a = await election.join('a');
      await election.leads(a);
      const b = await election.join('b');
      await (how === 'paused' ? server.pause() : server.kill());
      const awayAt = machineNow();
      const ended = await waitUntil(
        async () => {
          const term = await firstTerm(a);
          return term.endedAt === undefined ? undefined : term;
        },
        { what: 'the leadership to end', timeoutMs: 40_000 },
      );
      expect(ended.reason).toBe('unconfirmed');
      expect((ended.endedAt as number) - awayAt).toBeLessThan(TTL_MS + SLACK_MS);
      expect(await b.call.terms()).toEqual([]);
      if (how === 'paused') server.resume();
      else await server.restart();
      const terms = await waitUntil(
        async () => {
          const later = [...(await a.call.terms()).slice(1), ...(await b.call.terms())];
          return later.length > 0 ? later : undefined;
        },
        { what: 'a leader after the outage', timeoutMs: 40_000 },
      );
      expect(terms).toHaveLength(1);
      expect(terms[0]?.beganAt).toBeGreaterThan(ended.endedAt as number);
      expect(terms[0]?.token).toBeGreaterThan(ended.token as bigint);
    },
  );
});
