import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import type { AcquireRequest, Attempt, Call, Grant } from '../../src/backend/types.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lease } from '../../src/lease.ts';
import { locksOn, settled } from '../fixture.ts';
import {
  answerLater,
  capabilities,
  contended,
  grant,
  type ScriptedBackend,
  scriptedBackend,
} from '../scripted-backend.ts';

/** More microtasks than lie between an answer of the backend and what the caller sees of it. */
const TURNS = 20;

const reason = new Error('the user went away');

/** Lets `count` microtasks run. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
}

const isPending = (promise: Promise<unknown>): boolean => inspect(promise).includes('<pending>');

/** A backend that grants when the test says, and the ids that it granted. */
function grantedOnDemand(how: 'attempt' | 'hand-off' | 'many') {
  const asked: string[] = [];
  const { answer, give } = answerLater<void>();
  const grantTo = (request: AcquireRequest, call: Call): Grant => {
    asked.push(request.acquisitionId);
    return grant(request, call);
  };
  const backend = scriptedBackend({
    downgrade: () => Promise.resolve({ status: 'held' }),
    resize: () => Promise.resolve({ status: 'set' }),
    capabilities: {
      ...capabilities,
      modes: ['exclusive', 'shared', 'permit'],
      features: how === 'many' ? ['many'] : [],
    },
    ...(how === 'attempt' && {
      attempt: (request, _enqueue, call): Promise<Attempt> =>
        answer.then(() => ({ status: 'granted', grant: grantTo(request, call) })),
    }),
    ...(how === 'hand-off' && {
      attempt: () => Promise.resolve(contended),
      awaitTurn: (request, call): Promise<Grant> => answer.then(() => grantTo(request, call)),
    }),
    ...(how === 'many' && {
      attemptMany: (requests, call) => answer.then(() => requests.map((one) => grantTo(one, call))),
    }),
  });
  return { backend, give, asked };
}

function expectReleased(backend: ScriptedBackend, granted: readonly string[]): void {
  const back = [...backend.of('abandon'), ...backend.of('release')].flatMap(({ ids }) => ids);
  expect([...new Set(back)].sort()).toEqual([...granted].sort());
}

const ways = [
  ['acquire', 'attempt', (locks: LockManager, signal: AbortSignal) => locks.lock('a').acquire({ signal })],
  ['acquire', 'hand-off', (locks: LockManager, signal: AbortSignal) => locks.lock('a').acquire({ signal })],
  [
    'tryAcquire',
    'attempt',
    (locks: LockManager, signal: AbortSignal) => locks.lock('a').tryAcquire({ signal }),
  ],
  [
    'semaphore.acquire',
    'attempt',
    (locks: LockManager, signal: AbortSignal) => locks.semaphore('a', 2).acquire({ signal }),
  ],
  [
    'semaphore.tryAcquire',
    'attempt',
    (locks: LockManager, signal: AbortSignal) => locks.semaphore('a', 2).tryAcquire({ signal }),
  ],
] as const;

/** Aborts one microtask later each time, until the acquire is settled by then: before that it holds nothing. */
async function abortAtEveryMoment(
  how: 'attempt' | 'hand-off' | 'many',
  mostTurns: number,
  acquire: (locks: LockManager, signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  for (let turn = 0; turn < mostTurns; turn += 1) {
    const { backend, give, asked } = grantedOnDemand(how);
    const controller = new AbortController();
    const acquiring = acquire(locksOn(backend), controller.signal);
    acquiring.catch(() => {});
    await settled();
    give();
    await turns(turn);
    const wasPending = isPending(acquiring);
    controller.abort(reason);
    if (!wasPending) return;
    await expect(acquiring).rejects.toBe(reason);
    await settled();
    expectReleased(backend, asked);
  }
  expect.unreachable('it never settled');
}

test.each(ways)(
  '%s by %s: who aborts before it is settled does not hold, at whatever moment',
  (_, how, call) => abortAtEveryMoment(how, TURNS, call),
);

test.each(['attempt', 'many'] as const)('a set by %s: who aborts before it is settled holds nothing', (how) =>
  abortAtEveryMoment(how, 4 * TURNS, (locks, signal) =>
    locks.all([locks.lock('a'), locks.lock('b')]).acquire({ signal }),
  ),
);

test.each(ways)(
  '%s by %s: a manager that is closed meanwhile gives out no lease that it does not end',
  async (_, how, call) => {
    for (let turn = 0; turn < TURNS; turn += 1) {
      const { backend, give, asked } = grantedOnDemand(how);
      const locks = locksOn(backend);
      let signal: AbortSignal | undefined;
      const acquiring = call(locks, new AbortController().signal).then((lease: Lease | undefined) => {
        signal = lease?.signal;
      });
      acquiring.catch(() => {});
      await settled();
      give();
      await turns(turn);
      await locks.close();
      const rejected = await acquiring.then(
        () => undefined,
        (error: unknown) => error,
      );
      if (rejected === undefined)
        expect(signal?.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'closed' });
      else expect(rejected).toMatchObject({ code: 'LOCK_CLOSED' });
      expectReleased(backend, asked);
    }
  },
);
