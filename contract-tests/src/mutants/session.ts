import type { Mutant } from './mutant.ts';
import { sessionBackendOf } from '../fixtures/session-backend.ts';
import { onGrants } from './on-grants.ts';

let everybodyIsLost = new AbortController();

export const sessionMutants: readonly Mutant[] = [
  {
    name: 'session-end-is-silent',
    says: 'the end of a session is not reported',
    host: 'session-memory',
    expected: [
      'session/end-loses-all-its-leases',
      'session/end-frees-its-resources',
      'session/others-are-unaffected',
    ],
    backend: (backend) =>
      onGrants(backend, (grant) => {
        const { lost: _, ...silent } = grant;
        return { ...silent, session: { validUntil: () => performance.now() + 300 } };
      }),
  },
  {
    name: 'session-never-seems-to-end',
    says: 'a session always counts as valid',
    host: 'session-memory',
    expected: ['session/stall-reports-the-loss'],
    backend: (backend) =>
      onGrants(backend, (grant) => ({ ...grant, session: { validUntil: () => performance.now() + 300 } })),
  },
  {
    name: 'session-outlives-its-process',
    says: 'the store keeps the holds of a killed client for a minute',
    host: 'session-sqlite',
    expected: ['session/killed-holder-frees-in-time', 'session/frozen-holder-learns-the-loss'],
    backend(backend) {
      sessionBackendOf(backend).keptForMs = 60_000;
      return backend;
    },
  },
  {
    name: 'session-ends-by-ttl',
    says: 'a lease ends by its ttl, though its session lives',
    host: 'session-memory',
    expected: ['session/outlives-the-ttl'],
    backend: (backend) =>
      onGrants(backend, (grant) => {
        const end = grant.countedFrom + grant.request.ttlMs;
        return { ...grant, session: { validUntil: () => Math.min(end, grant.session?.validUntil() ?? end) } };
      }),
  },
  {
    name: 'session-outlives-max-hold',
    says: 'a hold in a session goes on past its maxHoldMs',
    host: 'session-memory',
    expected: ['loss/max-hold-ends-the-hold'],
    lock: (lock) => ({
      acquire: (options) => lock.acquire({ ...options, maxHoldMs: undefined }),
    }),
  },
  {
    name: 'max-hold-is-only-told',
    says: 'the holder is told that its maxHoldMs is over, and the session keeps the lock from others',
    host: 'session-memory',
    expected: ['loss/max-hold-ends-the-hold'],
    calls: () => ({ abandon: async () => {} }),
  },
  {
    name: 'one-session-for-all',
    says: 'the end of one session ends the leases of all',
    host: 'session-memory',
    expected: ['session/others-are-unaffected'],
    backend: (backend) =>
      onGrants(backend, (grant) => {
        grant.lost?.addEventListener('abort', () => {
          everybodyIsLost.abort({ reason: 'session-lost' });
          everybodyIsLost = new AbortController();
        });
        return { ...grant, lost: everybodyIsLost.signal };
      }),
  },
  {
    name: 'lease-with-a-session',
    says: 'tenure is declared as a lease, and grants have a session',
    expected: [
      'session/end-loses-all-its-leases',
      'session/end-frees-its-resources',
      'session/others-are-unaffected',
      'session/outlives-the-ttl',
      'session/stall-reports-the-loss',
      'session/killed-holder-frees-in-time',
      'session/frozen-holder-learns-the-loss',
    ],
    backend: (backend) =>
      onGrants(backend, (grant) => ({
        ...grant,
        session: { validUntil: () => grant.countedFrom + grant.request.ttlMs },
      })),
  },
];
