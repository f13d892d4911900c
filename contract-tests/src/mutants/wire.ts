import type { AcquireRequest, Grant } from '@locks/core/backend';
import { TcpBackend } from '../fixtures/tcp-backend.ts';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';
import { onGrants } from './on-grants.ts';

const ANSWER_MS = 500;

/** Mutants that are broken below the calls of core, between the adapter and its server. */
export const wireMutants: readonly Mutant[] = [
  {
    name: 'unanswered-write-is-granted',
    says: 'an adapter waits half a second for the answer to its write, and then counts it as done',
    host: 'memory-tcp',
    expected: ['faults/silent-wire-grants-nothing'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const countedFrom = call.now();
        const grant: Grant = { request, countedFrom, fencingToken: BigInt(Date.now()) };
        const granted = pause(ANSWER_MS).then(() => ({ status: 'granted', grant }) as const);
        return await Promise.race([backend.attempt(request, enqueue, call), granted]);
      },
    }),
  },
  {
    name: 'adapter-counts-from-the-reply',
    says: 'an adapter reads the clock when the reply to its attempt comes',
    host: 'memory-tcp',
    expected: ['expiry/stalled-client-counts-from-sending', 'expiry/late-replies-cost-validity'],
    backend: (backend) => onGrants(backend, (grant, _, call) => ({ ...grant, countedFrom: call.now() })),
  },
  {
    name: 'cut-attempt-gets-another-id',
    says: 'an adapter whose connection ended asks again under another id',
    host: 'memory-tcp',
    expected: ['idempotence/cut-replies-count-once'],
    backend(backend) {
      const again = new Map<string, string>();
      const renamed = (request: AcquireRequest): AcquireRequest => ({
        ...request,
        acquisitionId: again.get(request.acquisitionId) ?? request.acquisitionId,
      });
      const send: typeof backend.attempt = async (request, enqueue, call) => {
        const attempt = await backend.attempt(renamed(request), enqueue, call);
        return attempt.status === 'granted'
          ? { status: 'granted', grant: { ...attempt.grant, request } }
          : attempt;
      };
      return {
        attempt: (request, enqueue, call) =>
          send(request, enqueue, call).catch(() => {
            again.set(request.acquisitionId, `${request.acquisitionId.slice(0, 50)}-again`);
            return send(request, enqueue, call);
          }),
        release: (grant, call) => backend.release({ ...grant, request: renamed(grant.request) }, call),
        abandon: (request, call) => backend.abandon(renamed(request), call),
        renew: (items, call) =>
          backend.renew(
            items.map(({ grant, ttlMs }) => ({
              grant: { ...grant, request: renamed(grant.request) },
              ttlMs,
            })),
            call,
          ),
      };
    },
  },
  {
    name: 'token-follows-an-earlier-read',
    says: 'an adapter reads the last token, and numbers its grant one above it',
    host: 'memory-tcp',
    expected: ['fencing/rises-past-a-slow-client'],
    backend: (backend) => ({
      async attempt(request, enqueue, call) {
        const { resource } = request;
        await backend.inspect(resource, call);
        const fencingToken = (lastTokens.get(resource) ?? 0n) + 1n;
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt.status !== 'granted') return attempt;
        lastTokens.set(resource, fencingToken);
        return { status: 'granted', grant: { ...attempt.grant, fencingToken } };
      },
    }),
  },
  {
    name: 'replies-belong-to-the-oldest-request',
    says: 'an adapter counts every reply as the answer to its oldest request',
    host: 'memory-tcp',
    expected: ['idempotence/repeated-replies-count-once'],
    backend(backend) {
      if (backend instanceof TcpBackend) backend.matches = 'the oldest request';
      return backend;
    },
  },
];

/** Stands for the last tokens in the store. */
const lastTokens = new Map<string, bigint>();
