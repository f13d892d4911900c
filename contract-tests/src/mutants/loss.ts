import type { Lease } from '@locks/core';
import { delegateLease } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const lossMutants: readonly Mutant[] = [
  {
    name: 'loss-is-silent',
    says: 'the signal of a lease never aborts',
    expected: [
      'loss/force-release-is-reported',
      'loss/eviction-is-reported',
      'loss/blocked-loop-aborts-the-signal',
      'expiry/reported-before-the-next-holds',
      'renewal/lost-answer-ends-at-once',
      'renewal/unknown-moves-nothing',
      'renewal/shorter-ttl-counts-from-sending',
    ],
    lease: () => {
      const { signal } = new AbortController();
      return {
        get signal() {
          return signal;
        },
      };
    },
  },
  {
    name: 'reads-no-wall-clock',
    says: 'the properties of a lease depend on the monotonic clock alone',
    expected: ['loss/wall-clock-is-moved'],
    lease: (lease) => readsOff(lease, performance),
  },
  {
    name: 'goes-by-the-wall-clock',
    says: 'the properties of a lease depend on the wall clock alone',
    expected: ['loss/wall-clock-is-moved'],
    lease: (lease) => readsOff(lease, Date),
  },
  {
    name: 'signal-waits-for-a-timer',
    says: 'the signal aborts in the timer phase after the loss',
    expected: ['loss/blocked-loop-reports-before-the-next-holds'],
    lease: (lease) => {
      const delayed = new AbortController();
      const abort = (): void => void setTimeout(() => delayed.abort(lease.signal.reason), 0);
      lease.signal.addEventListener('abort', abort, { once: true });
      return {
        get signal() {
          return delayed.signal;
        },
      };
    },
  },
  {
    name: 'validity-is-never-counted-down',
    says: 'a lease counts its whole ttl until the store reports otherwise',
    host: 'sqlite',
    expected: ['loss/frozen-process-learns-the-loss', 'loss/blocked-loop-reads-the-loss'],
    lease: () => ({
      get validForMs() {
        return 1_000;
      },
      assertValid: () => {},
    }),
  },
];

/** A lease whose validity is read on one clock alone. */
function readsOff(lease: Lease, clock: { now(): number }): Lease {
  const until = clock.now() + lease.validForMs;
  return delegateLease(lease, {
    get validForMs() {
      return Math.max(0, until - clock.now());
    },
  });
}
