import type { AcquireRequest, Grant } from '@locks/core';
import { delegate, delegateLease, overLeases } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls, pause } from './on-calls.ts';
import { onGrants } from './on-grants.ts';

export const idempotenceMutants: readonly Mutant[] = [
  {
    name: 'repeated-attempt-is-contended',
    says: 'an attempt of the id that holds is contended',
    host: 'memory',
    expected: ['idempotence/repeated-attempt', 'idempotence/lost-reply-of-acquire'],
    backend(backend) {
      const granted = new Set<string>();
      return delegate(backend, {
        async attempt(request, enqueue, call) {
          if (granted.has(request.acquisitionId)) return { status: 'contended' };
          const attempt = await backend.attempt(request, enqueue, call);
          if (attempt.status === 'granted') granted.add(request.acquisitionId);
          return attempt;
        },
      });
    },
  },
  {
    name: 'repeated-attempt-gives-more-time',
    says: 'an attempt of the id that holds is told the whole ttl again',
    host: 'memory',
    expected: ['idempotence/repeated-attempt'],
    backend: (backend) =>
      onGrants(
        backend,
        ({ request, fencingToken, countedFrom }) => ({ request, fencingToken, countedFrom }) as Grant,
      ),
  },
  {
    name: 'repeated-attempt-loses-its-place',
    says: 'an attempt of an id that waits goes to the end of the queue',
    host: 'memory',
    expected: ['idempotence/repeated-attempt-in-the-queue'],
    backend: (backend) =>
      delegate(backend, {
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
    host: 'memory',
    expected: ['idempotence/ghost-lives-one-ttl', 'idempotence/queued-ghost-is-passed-over'],
    backend(backend) {
      const abandoned = new Set<string>();
      return delegate(backend, {
        abandon(request, call) {
          abandoned.add(request.acquisitionId);
          return backend.abandon(request, call);
        },
        attempt(request, enqueue, call) {
          const ttlMs = abandoned.has(request.acquisitionId) ? request.ttlMs * 1_000 : request.ttlMs;
          return backend.attempt({ ...request, ttlMs }, enqueue, call);
        },
      });
    },
  },
  {
    name: 'resent-release-looks-lost',
    says: '"not held" after an unanswered release is taken for a loss',
    host: 'memory',
    expected: ['idempotence/lost-reply-of-release'],
    calls: onCalls((backend) =>
      delegate(backend, {
        release: (grant, call) => backend.release(grant, call).catch(() => backend.release(grant, call)),
      }),
    ),
  },
  {
    name: 'resent-release-ends-the-next',
    says: 'the second sending of a release ends what was granted after the answer to the first',
    host: 'memory',
    expected: ['idempotence/resent-calls-spare-others'],
    backend(backend) {
      const released = new Set<string>();
      let latest: AcquireRequest | undefined;
      return delegate(backend, {
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
      });
    },
  },
  {
    name: 'unknown-release-looks-lost',
    says: 'a release that is answered with unknown is taken for a loss',
    host: 'memory',
    expected: ['idempotence/resent-release-is-no-loss'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async release(grant, call) {
          const answer = await backend.release(grant, call);
          return answer === 'unknown' ? 'not-held' : answer;
        },
      }),
    ),
  },
  {
    name: 'nothing-is-retryable',
    says: 'no failed call is sent again',
    host: 'memory',
    expected: ['idempotence/lost-reply-of-acquire', 'idempotence/lost-reply-of-release'],
    calls: onCalls((backend) => delegate(backend, { isRetryable: () => false })),
  },
  {
    name: 'release-takes-its-time',
    says: 'a release without an answer ends seconds later',
    host: 'memory',
    expected: ['idempotence/release-without-an-answer-ends'],
    locks: (locks) =>
      overLeases(locks, (lease) =>
        delegateLease(lease, {
          release: () =>
            lease.release().catch(async (error: unknown) => {
              await pause(2_000);
              throw error;
            }),
        }),
      ),
  },
];
