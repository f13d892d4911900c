import { delegate, delegateLease, overLeases, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';
import { onGrants, onRequests } from './on-grants.ts';

export const expiryMutants: readonly Mutant[] = [
  {
    name: 'leases-never-end',
    says: 'the store keeps an abandoned lease a thousand times longer',
    host: 'memory',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'idempotence/ghost-lives-one-ttl',
      'renewal/recreates-nothing',
      'fencing/rises-after-expiry',
    ],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 1_000 })),
  },
  {
    name: 'dead-holders-hold-on',
    says: 'the store keeps the lease of a dead process a hundred times longer',
    host: 'sqlite',
    expected: ['expiry/killed-holder-frees-in-time', 'loss/frozen-process-is-told'],
    backend: (backend) => onRequests(backend, (request) => ({ ...request, ttlMs: request.ttlMs * 100 })),
  },
  {
    name: 'ends-by-wall-clocks',
    says: 'a client writes the end of its hold by its wall clock, and others look at it with theirs',
    host: 'sqlite',
    expected: ['expiry/wall-clocks-do-not-count'],
    backend: (backend) =>
      delegate(backend, {
        // As a table on a server would be.
        capabilities: { ...backend.capabilities, reach: 'network' },
        async attempt(request, enqueue, call) {
          const { holders } = await backend.inspect(request.resource, call);
          for (const { label, acquisitionId } of holders)
            if (Number(label) < Date.now())
              await backend.forceRelease?.(request.resource, acquisitionId, call);
          return backend.attempt({ ...request, label: `${Date.now() + request.ttlMs}` }, enqueue, call);
        },
      }),
  },
  {
    name: 'leases-end-early',
    says: 'the store ends a lease at a fifth of its ttl',
    host: 'memory',
    expected: [
      'expiry/abandoned-lease-ends-in-time',
      'expiry/holder-ends-before-the-store',
      'expiry/told-before-the-next-holds',
    ],
    backend: (backend) =>
      onRequests(backend, (request) => ({ ...request, ttlMs: Math.ceil(request.ttlMs / 5) })),
  },
  {
    name: 'no-drift-margin',
    says: 'a holder believes in its lease to the very end',
    host: 'memory',
    expected: ['expiry/holder-ends-before-the-store'],
    calls: onCalls((backend) =>
      onGrants(backend, (grant, { ttlMs }) => ({
        ...grant,
        countedFrom: grant.countedFrom + ttlMs * 0.01 + 2,
      })),
    ),
  },
  {
    name: 'counts-from-the-reply',
    says: 'a lease counts from the moment its reply came',
    host: 'memory',
    expected: ['expiry/slow-reply-costs-validity', 'expiry/late-grant-is-never-handed-out'],
    calls: onCalls((backend) =>
      onGrants(backend, (grant, _, call) => ({ ...grant, countedFrom: call.now() })),
    ),
  },
  {
    name: 'min-remaining-is-ignored',
    says: 'a grant is handed out however little is left of it',
    host: 'memory',
    expected: ['expiry/short-grant-is-given-back'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({ acquire: (options) => lock.acquire({ ...options, minRemainingMs: 0 }) })),
  },
  {
    name: 'abandons-nothing',
    says: 'core never abandons what it gave up',
    host: 'memory',
    expected: [
      'expiry/short-grant-is-given-back',
      'expiry/late-grant-is-never-handed-out',
      'idempotence/lost-reply-leaves-no-hold',
      'idempotence/late-grant-is-abandoned',
      'idempotence/unanswered-abandon-is-sent-again',
      'renewal/unconfirmed-is-abandoned',
    ],
    calls: onCalls((backend) => delegate(backend, { abandon: () => Promise.resolve() })),
  },
  {
    name: 'failed-abandon-is-done',
    says: 'core takes an abandon that failed for done',
    host: 'memory',
    expected: ['idempotence/unanswered-abandon-is-sent-again'],
    calls: onCalls((backend) =>
      delegate(backend, { abandon: (...args) => backend.abandon(...args).catch(() => {}) }),
    ),
  },
  {
    name: 'loss-is-told-late',
    says: 'the signal aborts half a second after the loss',
    host: 'memory',
    expected: ['expiry/told-before-the-next-holds', 'loss/blocked-loop-aborts-the-signal'],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        const late = new AbortController();
        const tell = (): void => void setTimeout(() => late.abort(lease.signal.reason), 500);
        lease.signal.addEventListener('abort', tell, { once: true });
        return delegateLease(lease, {
          get signal() {
            return late.signal;
          },
        });
      }),
  },
  {
    name: 'hand-overs-stay-short',
    says: 'a lease that was handed over never lasts longer than a second',
    host: 'memory',
    expected: ['expiry/short-hand-over-is-renewed-first'],
    calls: onCalls((backend) =>
      delegate(backend, {
        async awaitTurn(...args) {
          const grant = await backend.awaitTurn?.(...args);
          return grant && { ...grant, validForMs: 1_000 };
        },
        renew: async (...args) =>
          (await backend.renew(...args)).map((standing) =>
            standing.status === 'held' ? { ...standing, validForMs: 1_000 } : standing,
          ),
      }),
    ),
  },
];
