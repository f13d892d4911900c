import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core';
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
    name: 'abandon-ends-whoever-holds',
    says: 'an abandon frees the resource, whoever holds it',
    host: 'memory',
    expected: ['exclusion/amid-random-faults'],
    backend: (backend) =>
      delegate(backend, {
        async abandon(request, call) {
          await backend.abandon(request, call);
          await backend.forceRelease?.(request.resource, undefined, call);
        },
      }),
  },
  {
    name: 'repeated-attempt-gives-more-time',
    says: 'a repeated attempt of an id that holds is answered with the whole ttl',
    host: 'memory',
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
    host: 'memory',
    expected: ['idempotence/no-grant-from-the-past', 'idempotence/no-grant-after-a-forced-end'],
    backend: (backend) => withRecord(backend, () => true),
  },
  {
    name: 'grants-from-a-record-with-ends',
    says: 'an attempt is answered from a record of grants, until its ttl is over',
    host: 'memory',
    expected: ['idempotence/no-grant-after-a-forced-end'],
    backend: (backend) =>
      withRecord(backend, ({ countedFrom, request }, { now }) => now() < countedFrom + request.ttlMs),
  },
  {
    name: 'one-step-from-a-record',
    says: 'attemptMany is answered from a record of grants, until their release',
    host: 'memory',
    expected: ['all/one-step-repeated'],
    backend: (backend) => withRecord(backend, () => true, 'attemptMany'),
  },
  {
    name: 'repeated-attempt-loses-its-position',
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
    says: '"not held" after an unanswered release counts as a loss',
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
    says: 'the second sending of a release ends a hold that was granted after the answer to the first',
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
    says: 'a release that is answered with unknown counts as a loss',
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

/** Remembers grants by acquisition id, outside the store. */
function withRecord(
  backend: LockBackend,
  counts: (grant: Grant, call: Call) => boolean,
  answers: 'attempt' | 'attemptMany' = 'attempt',
): LockBackend {
  const record = new Map<string, Grant>();
  const recorded = ({ acquisitionId }: AcquireRequest, call: Call): Grant[] => {
    const grant = record.get(acquisitionId);
    return grant !== undefined && counts(grant, call) ? [grant] : [];
  };
  return delegate(backend, {
    async attempt(request, enqueue, call) {
      const [grant] = answers === 'attempt' ? recorded(request, call) : [];
      if (grant !== undefined) return { status: 'granted', grant };
      const attempt = await backend.attempt(request, enqueue, call);
      if (attempt.status === 'granted') record.set(request.acquisitionId, attempt.grant);
      return attempt;
    },
    async attemptMany(requests, call) {
      const known = answers === 'attemptMany' ? requests.flatMap((request) => recorded(request, call)) : [];
      if (known.length === requests.length) return known;
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
