import type { LockBackend, AcquireRequest, Grant } from '@locks/core/backend';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';
import { onGrants } from './on-grants.ts';

export const idempotenceMutants: readonly Mutant[] = [
  {
    name: 'repeated-attempt-is-contended',
    says: 'an attempt of the id that holds is contended',
    expected: ['idempotence/repeated-attempt', 'idempotence/lost-reply-of-acquire'],
    backend(backend) {
      const granted = new Set<string>();
      return {
        async attempt(request, enqueue, call) {
          if (granted.has(request.acquisitionId)) return { status: 'contended' };
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') granted.add(request.acquisitionId);
          return attempt;
        },
      };
    },
  },
  {
    name: 'repeated-attempt-gives-more-time',
    says: 'a repeated attempt of an id that holds is answered with the whole ttl',
    expected: ['idempotence/repeated-attempt'],
    backend: (backend) =>
      onGrants(
        backend,
        ({ request, fencingToken, countedFrom }) => ({ request, fencingToken, countedFrom }) as Grant,
      ),
  },
  {
    name: 'grants-from-a-record',
    says: 'an attempt is answered from a record of grants, until its release',
    expected: ['idempotence/no-grant-from-the-past', 'idempotence/no-grant-after-a-forced-end'],
    backend: (backend) => withRecord(backend, 'attempt'),
  },
  {
    name: 'one-step-from-a-record',
    says: 'attemptMany is answered from a record of grants, until their release',
    expected: ['all/one-step-repeated'],
    backend: (backend) => withRecord(backend, 'attemptMany'),
  },
  {
    name: 'repeated-attempt-loses-its-position',
    says: 'an attempt of an id that waits goes to the end of the queue',
    expected: ['idempotence/repeated-attempt-in-the-queue'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { waiters } = await backend.inspect(request.resource, call);
        const waits = waiters.some(({ acquisitionId }) => acquisitionId === request.acquisitionId);
        if (waits && enqueue) await backend.abandon(request, call);
        return backend.attempt(request, enqueue, call);
      },
    }),
  },
  {
    name: 'ghosts-live-for-ever',
    says: 'a request that comes after its abandon holds a thousand times longer',
    expected: ['idempotence/ghost-lives-one-ttl', 'idempotence/queued-ghost-is-passed-over'],
    backend(backend) {
      const abandoned = new Set<string>();
      return {
        abandon(request, call) {
          abandoned.add(request.acquisitionId);
          return backend.abandon(request, call);
        },
        attempt(request, enqueue, call) {
          const ttlMs = abandoned.has(request.acquisitionId) ? request.ttlMs * 1_000 : request.ttlMs;
          return backend.attempt({ ...request, ttlMs }, enqueue, call);
        },
      };
    },
  },
  {
    name: 'resent-release-looks-lost',
    says: '"not held" after an unanswered release counts as a loss',
    expected: ['idempotence/lost-reply-of-release'],
    calls: (backend) => ({
      release: (grant, call) => backend.release(grant, call).catch(() => backend.release(grant, call)),
    }),
  },
  {
    name: 'resent-release-ends-the-next',
    says: 'the second sending of a release ends a hold that was granted after the answer to the first',
    expected: ['idempotence/resent-calls-spare-others'],
    backend(backend) {
      const released = new Set<string>();
      let latest: AcquireRequest | undefined;
      return {
        async attempt(request, enqueue, call) {
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') latest = request;
          return attempt;
        },
        async release(grant, call) {
          const answer = await backend.release(grant, call);
          const { acquisitionId } = grant.request;
          if (released.has(acquisitionId)) {
            await pause(5);
            if (latest !== undefined) await backend.abandon(latest, call);
          }
          released.add(acquisitionId);
          return answer;
        },
      };
    },
  },
  {
    name: 'unknown-release-looks-lost',
    says: 'a release that is answered with unknown counts as a loss',
    expected: ['idempotence/resent-release-is-no-loss'],
    calls: (backend) => ({
      async release(grant, call) {
        const answer = await backend.release(grant, call);
        return answer === 'unknown' ? 'not-held' : answer;
      },
    }),
  },
  {
    name: 'forgets-failed-releases',
    says: 'a release without an answer is not repeated in the background',
    expected: ['idempotence/failed-release-goes-on'],
    calls(backend) {
      const failed = new Set<string>();
      return {
        release: (grant, call) =>
          backend.release(grant, call).catch((error: unknown) => {
            failed.add(grant.request.acquisitionId);
            throw error;
          }),
        abandon: async (request, call) => {
          if (!failed.has(request.acquisitionId)) await backend.abandon(request, call);
        },
      };
    },
  },
  {
    name: 'release-takes-its-time',
    says: 'a release without an answer ends seconds later',
    expected: ['idempotence/release-without-an-answer-ends'],
    lease: (lease) => ({
      release: () =>
        lease.release().catch(async (error: unknown) => {
          await pause(2_000);
          throw error;
        }),
    }),
  },
];

/** Remembers grants by acquisition id, outside the store. */
function withRecord(backend: LockBackend, answers: 'attempt' | 'attemptMany'): LockBackend {
  const record = new Map<string, Grant>();
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const grant = answers === 'attempt' ? record.get(request.acquisitionId) : undefined;
      if (grant !== undefined) return { status: 'granted', grant };
      const attempt = await backend.attempt(request, enqueue, call);
      if (attempt.status === 'granted') record.set(request.acquisitionId, attempt.grant);
      return attempt;
    },
    async attemptMany(requests, call) {
      const known = requests.flatMap(({ acquisitionId }) => record.get(acquisitionId) ?? []);
      if (answers === 'attemptMany' && known.length === requests.length) return known;
      const grants = await backend.attemptMany?.(requests, call);
      for (const grant of grants ?? []) record.set(grant.request.acquisitionId, grant);
      return grants;
    },
    abandon(request, call) {
      record.delete(request.acquisitionId);
      return backend.abandon(request, call);
    },
    release(grant, call) {
      record.delete(grant.request.acquisitionId);
      return backend.release(grant, call);
    },
  });
}
