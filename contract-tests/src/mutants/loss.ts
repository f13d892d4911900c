import type { Lease } from '@locks/core';
import { delegateLease, overLeases } from './delegate.ts';
import type { Mutant } from './mutant.ts';

export const lossMutants: readonly Mutant[] = [
  {
    name: 'loss-is-silent',
    says: 'the signal of a lease never aborts',
    host: 'memory',
    expected: [
      'loss/force-release-is-told',
      'loss/eviction-is-told',
      'loss/blocked-loop-aborts-the-signal',
      'expiry/told-before-the-next-holds',
      'renewal/lost-answer-ends-at-once',
      'renewal/unknown-moves-nothing',
      'renewal/shorter-ttl-counts-from-sending',
    ],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        const { signal } = new AbortController();
        return delegateLease(lease, {
          get signal() {
            return signal;
          },
        });
      }),
  },
  {
    name: 'release-aborts-the-signal',
    says: 'the signal aborts when the lease is released',
    host: 'memory',
    expected: [
      'loss/release-is-no-loss',
      'renewal/released-lease-is-not-renewed',
      'idempotence/lost-reply-of-release',
      'idempotence/resent-release-is-no-loss',
    ],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        const released = new AbortController();
        const either = AbortSignal.any([lease.signal, released.signal]);
        return delegateLease(lease, {
          get signal() {
            return either;
          },
          async release() {
            released.abort(new Error('released'));
            await lease.release();
          },
        });
      }),
  },
  {
    name: 'reads-no-wall-clock',
    says: 'what is read from a lease goes by the monotonic clock alone',
    host: 'memory',
    expected: ['loss/wall-clock-is-moved'],
    locks: (locks) => overLeases(locks, (lease) => readsOff(lease, performance)),
  },
  {
    name: 'goes-by-the-wall-clock',
    says: 'what is read from a lease goes by the wall clock alone',
    host: 'memory',
    expected: ['loss/wall-clock-is-moved'],
    locks: (locks) => overLeases(locks, (lease) => readsOff(lease, Date)),
  },
  {
    name: 'reads-wait-for-a-timer',
    says: 'what is read from a lease knows of a loss only after a timer ran',
    host: 'memory',
    expected: ['loss/blocked-loop-reads-the-loss'],
    locks: (locks) => overLeases(locks, (lease) => readsByTimer(lease)),
  },
  {
    name: 'signal-waits-for-a-timer',
    says: 'the signal aborts in the timer phase after the loss',
    host: 'memory',
    expected: ['loss/blocked-loop-tells-before-the-next-holds'],
    locks: (locks) =>
      overLeases(locks, (lease) => {
        const told = new AbortController();
        const tell = (): void => void setTimeout(() => told.abort(lease.signal.reason), 0);
        lease.signal.addEventListener('abort', tell, { once: true });
        return delegateLease(lease, {
          get signal() {
            return told.signal;
          },
        });
      }),
  },
  {
    name: 'validity-is-never-counted-down',
    says: 'a lease believes in its whole ttl until it is told otherwise',
    host: 'sqlite',
    expected: ['loss/frozen-process-is-told', 'loss/blocked-loop-reads-the-loss'],
    locks: (locks) =>
      overLeases(locks, (lease) =>
        delegateLease(lease, {
          get validForMs() {
            return 1_000;
          },
          assertValid: () => {},
        }),
      ),
  },
];

function readsByTimer(lease: Lease): Lease {
  const told = new AbortController();
  let validForMs = lease.validForMs;
  setInterval(() => {
    validForMs = lease.validForMs;
    if (lease.signal.aborted) told.abort(lease.signal.reason);
  }, 5).unref();
  return delegateLease(lease, {
    get validForMs() {
      return validForMs;
    },
    get signal() {
      return told.signal;
    },
    assertValid() {
      if (validForMs === 0) lease.assertValid();
    },
  });
}

/** How long it is valid for is read on one clock alone. */
function readsOff(lease: Lease, clock: { now(): number }): Lease {
  const until = clock.now() + lease.validForMs;
  return delegateLease(lease, {
    get validForMs() {
      return Math.max(0, until - clock.now());
    },
  });
}
