import type { LockBackend } from '@locks/core';
import { delegate } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onGrants, onRequests } from './on-grants.ts';

export const expiryMutants: readonly Mutant[] = [
  {
    name: 'leases-never-end',
    says: 'the store keeps an abandoned lease a thousand times longer',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'idempotence/ghost-lives-one-ttl',
      'renewal/recreates-nothing',
      'fencing/rises-after-expiry',
      'shared/a-writer-follows-a-dead-reader',
      'shared/every-share-has-its-own-end',
    ],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 1_000 })),
  },
  {
    name: 'dead-holders-hold-on',
    says: 'the store keeps the lease of a dead process a hundred times longer',
    host: 'sqlite',
    expected: [
      'expiry/killed-holder-frees-in-time',
      'loss/frozen-process-learns-the-loss',
      'shared/a-killed-reader-frees-its-share',
    ],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 100 })),
  },
  {
    name: 'ends-by-wall-clocks',
    says: 'a client writes the end of its hold by its wall clock, and others compare it with their own',
    host: 'sqlite',
    expected: ['expiry/wall-clocks-do-not-count'],
    backend: (backend) => ({
      // One table for all processes, as on a server.
      capabilities: { ...backend.capabilities, reach: 'network' },
      async attempt(request, enqueue, call) {
        const { holders } = await backend.inspect(request.resource, call);
        for (const { label, acquisitionId } of holders)
          if (Number(label) < Date.now()) await backend.forceRelease?.(request.resource, acquisitionId, call);
        return backend.attempt({ ...request, label: `${Date.now() + request.ttlMs}` }, enqueue, call);
      },
    }),
  },
  {
    name: 'leases-end-early',
    says: 'the store ends a lease at a fifth of its ttl',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'expiry/holder-ends-before-the-store',
      'expiry/reported-before-the-next-holds',
    ],
    backend: (backend) =>
      onRequests(backend, (request) => ({ ...request, ttlMs: Math.ceil(request.ttlMs / 5) })),
  },
  {
    name: 'no-drift-margin',
    says: 'a holder counts its lease as valid to the very end, without a margin',
    expected: ['expiry/holder-ends-before-the-store'],
    calls: (backend) =>
      onGrants(backend, (grant, { ttlMs }) => ({
        ...grant,
        countedFrom: grant.countedFrom + ttlMs * 0.01 + 2,
      })),
  },
  {
    name: 'counts-from-the-reply',
    says: 'a lease counts from the arrival of its reply',
    expected: ['expiry/slow-reply-costs-validity', 'expiry/late-grant-is-never-handed-out'],
    calls: (backend) => onGrants(backend, (grant, _, call) => ({ ...grant, countedFrom: call.now() })),
  },
  {
    name: 'abandons-nothing',
    says: 'core never abandons an id that it gave up',
    expected: [
      'expiry/late-grant-is-never-handed-out',
      'idempotence/lost-reply-leaves-no-hold',
      'idempotence/late-grant-is-abandoned',
      'idempotence/unanswered-abandon-is-sent-again',
      'renewal/unconfirmed-is-abandoned',
    ],
    calls: () => ({ abandon: () => Promise.resolve() }),
  },
  {
    name: 'failed-abandon-is-done',
    says: 'core counts a failed abandon as done',
    expected: ['idempotence/unanswered-abandon-is-sent-again'],
    calls: (backend) => ({ abandon: (...args) => backend.abandon(...args).catch(() => {}) }),
  },
  {
    name: 'loss-is-reported-late',
    says: 'the signal aborts half a second after the loss',
    expected: ['expiry/reported-before-the-next-holds', 'loss/blocked-loop-aborts-the-signal'],
    lease: (lease) => {
      const late = new AbortController();
      const abort = (): void => void setTimeout(() => late.abort(lease.signal.reason), 500);
      lease.signal.addEventListener('abort', abort, { once: true });
      return {
        get signal() {
          return late.signal;
        },
      };
    },
  },
  {
    name: 'hand-offs-stay-short',
    says: 'a lease from a hand-off never lasts longer than a second',
    expected: [
      'expiry/hand-off-lasts-its-ttl',
      'expiry/hand-off-behind-a-steal-lasts-its-ttl',
      'expiry/hand-off-to-readers-lasts-its-ttl',
      'expiry/hand-off-of-permits-lasts-its-ttl',
    ],
    calls: withShortHandOffs,
  },
  {
    name: 'hand-offs-to-processes-stay-short',
    says: 'a lease from a hand-off to another process never lasts longer than a second',
    host: 'sqlite',
    expected: ['expiry/stall-after-a-hand-off'],
    backend: withShortHandOffs,
  },
];

function withShortHandOffs(backend: LockBackend): LockBackend {
  let waited = false;
  return delegate(backend, {
    async attempt(...args) {
      const attempt = await backend.attempt(...args);
      if (attempt.status !== 'granted') waited = true;
      const isShort = waited && attempt.status === 'granted';
      return isShort ? { ...attempt, grant: { ...attempt.grant, validForMs: 1_000 } } : attempt;
    },
    async awaitTurn(...args) {
      const grant = await backend.awaitTurn?.(...args);
      return grant && { ...grant, validForMs: 1_000 };
    },
    renew: async (...args) =>
      (await backend.renew(...args)).map((renewalStatus) =>
        renewalStatus.status === 'held' ? { ...renewalStatus, validForMs: 1_000 } : renewalStatus,
      ),
  });
}
