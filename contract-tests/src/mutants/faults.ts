import { channel } from 'node:diagnostics_channel';
import type { Call } from '@locks/core/backend';
import type { Mutant } from './mutant.ts';
import { pause } from './on-calls.ts';

/** The hold that the harness of SQLite writes as another program would. */
const STRANGER = 'of another program';

export const faultMutants: readonly Mutant[] = [
  {
    name: 'grants-where-the-store-failed',
    says: 'a failed attempt counts as a grant',
    expected: [
      'faults/failing-store',
      'faults/lasting-failure-fails-at-once',
      'faults/transient-failure-is-retried',
    ],
    calls: (backend) => ({
      async attempt(request, enqueue, call) {
        const countedFrom = call.now();
        try {
          return await backend.attempt(request, enqueue, call);
        } catch {
          return { status: 'granted', grant: { request, fencingToken: 1n, countedFrom } };
        }
      },
    }),
  },
  {
    name: 'believes-in-releases',
    says: 'a release without an answer counts as done',
    expected: ['faults/unanswered-release'],
    calls: (backend) => ({ release: (...args) => backend.release(...args).catch(() => 'released') }),
  },
  {
    name: 'trusts-every-grant',
    says: 'missing properties of a grant are made up',
    expected: ['faults/broken-promises'],
    calls: (backend) => ({
      async attempt(request, enqueue, call) {
        const attempt = await backend.attempt(request, enqueue, call);
        if (attempt?.status !== 'granted') return attempt;
        const { fencingToken = 1n, countedFrom } = attempt.grant;
        return { status: 'granted', grant: { ...attempt.grant, request, fencingToken, countedFrom } };
      },
    }),
  },
  {
    name: 'publishes-twice',
    says: 'an acquired lease is published twice',
    expected: ['faults/events-are-published'],
    lease: (lease) => {
      const { name: resource, acquisitionId } = lease;
      channel('locks:acquired').publish({ name: resource, acquisitionId, backend: 'memory' });
      return lease;
    },
  },
  {
    name: 'a-late-timer-is-a-verdict',
    says: 'a call whose deadline passes while the event loop stands still is given up, and not sent',
    expected: ['faults/stall-after-a-release', 'faults/stall-after-an-acquire'],
    calls: (backend) => ({
      attempt: (request, enqueue, call) => inTime(call, () => backend.attempt(request, enqueue, call)),
      release: (grant, call) => inTime(call, () => backend.release(grant, call)),
    }),
  },
  {
    name: 'foreign-data-is-misread',
    says: 'a call for a resource with data of another program fails as its decoder does',
    host: 'sqlite',
    expected: ['faults/foreign-data-fails-its-own-name'],
    backend: (backend) => ({
      async inspect(resource, call) {
        const state = await backend.inspect(resource, call);
        if (state.holders.some(({ acquisitionId }) => acquisitionId === STRANGER))
          throw new TypeError('Cannot read properties of undefined');
        return state;
      },
    }),
  },
];

/** Makes a call a few milliseconds later, if its deadline of now has not passed by then. */
async function inTime<T>(call: Call, send: () => Promise<T>): Promise<T> {
  const { deadline } = call;
  await pause(5);
  if (call.now() >= deadline) throw new Error('the time is over');
  return send();
}
