import type { Mutant } from './mutant.ts';
import { sessionBackendOf } from '../fixtures/session-backend.ts';
import { onGrants } from './on-grants.ts';

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
];
