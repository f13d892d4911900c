import { expect, test, vi } from 'vitest';
import { freshAcquisitionId } from '../../src/acquire/acquisition-id.ts';
import type { AcquireRequest, LockBackend } from '../../src/backend/types.ts';
import type { Locks } from '../../src/create-locks.ts';
import type { ManagerOptions } from '../../src/options.ts';
import { listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { capabilities, contended, granted, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const cut = new Error('connection cut');

function distinct(ids: readonly string[]): number {
  return new Set(ids).size;
}

test('after an error that can be repeated the same id attempts again', async () => {
  let failures = 2;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(cut) : Promise.resolve(granted(request, call));
    },
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const ids = backend.of('attempt').flatMap((sent) => sent.ids);
  expect(ids).toEqual([lease.acquisitionId, lease.acquisitionId, lease.acquisitionId]);
  expect(backend.of('abandon')).toEqual([]);
});

test('an error that cannot be repeated rejects at once, and the id is abandoned', async () => {
  const backend = scriptedBackend({ attempt: () => Promise.reject(cut), isRetryable: () => false });
  await expect(locksOn(backend).lock('a').acquire()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    cause: cut,
    lockName: 'a',
    backend: 'scripted',
  });
  expect(backend.of('attempt')).toHaveLength(1);
  expect(backend.of('abandon')[0]?.ids).toEqual(backend.of('attempt')[0]?.ids);
});

test('a single attempt that fails is not repeated, and is abandoned: it may have run all the same', async () => {
  const backend = scriptedBackend({ attempt: () => Promise.reject(cut) });
  const lock = locksOn(backend).lock('a');
  expect(await rejectionOf(lock.tryAcquire())).toBe('LOCK_BACKEND');
  expect(await rejectionOf(lock.acquire({ waitMs: 0 }))).toBe('LOCK_BACKEND');
  expect(backend.of('attempt')).toHaveLength(2);
  expect(backend.of('abandon')).toHaveLength(2);
});

test('a backend that throws where it should reject is treated as if it had rejected', async () => {
  const thrower = (): never => {
    throw cut;
  };
  const attempts = scriptedBackend({ attempt: thrower, isRetryable: () => false });
  expect(await rejectionOf(locksOn(attempts).lock('a').acquire())).toBe('LOCK_BACKEND');
  const waits = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: thrower,
    isRetryable: () => false,
  });
  expect(await rejectionOf(locksOn(waits).lock('a').acquire())).toBe('LOCK_BACKEND');
  expect(waits.of('abandon')).toHaveLength(1);
  const judges = scriptedBackend({ attempt: () => Promise.reject(cut), isRetryable: thrower });
  expect(await rejectionOf(locksOn(judges).lock('a').acquire())).toBe('LOCK_BACKEND');
});

test('a single attempt asks once, does not enqueue, and says that it is contended', async () => {
  const enqueues: boolean[] = [];
  const backend = scriptedBackend({
    attempt: (_request, enqueue) => {
      enqueues.push(enqueue);
      return Promise.resolve(contended);
    },
    awaitTurn: noAnswer,
  });
  const lock = locksOn(backend).lock('a');
  expect(await lock.tryAcquire()).toBeUndefined();
  expect(await rejectionOf(lock.acquire({ waitMs: 0 }))).toBe('LOCK_CONTENDED');
  expect(enqueues).toEqual([false, false]);
  expect(backend.of('awaitTurn')).toEqual([]);
  expect(backend.of('abandon')).toEqual([]);
});

test('a waiting acquire enqueues, and keeps its id through every attempt', async () => {
  useFakeClock();
  const enqueues: boolean[] = [];
  const backend = scriptedBackend({
    attempt: (_request, enqueue) => {
      enqueues.push(enqueue);
      return Promise.resolve({ status: 'contended', retryAfterMs: 100 });
    },
    awaitTurn: noAnswer,
  });
  const waiting = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 1_000 }));
  await pass(1_000);
  expect(await waiting).toBe('LOCK_TIMEOUT');
  expect(enqueues.every(Boolean)).toBe(true);
  expect(enqueues.length).toBeGreaterThan(9);
  expect(distinct(backend.sent.flatMap((sent) => sent.ids))).toBe(1);
  expect(backend.of('abandon')).toHaveLength(1);
});

test('a grant whose time is over is abandoned, and a fresh id attempts again', async () => {
  const remaining = [0, 0, 1_000];
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      Promise.resolve(granted(request, call, { validForMs: remaining.shift() ?? 0 })),
  });
  const lease = await locksOn(backend, { ttlMs: 1_000 }).lock('a').acquire();
  expect(lease.validForMs).toBeGreaterThan(900);
  const ids = backend.of('attempt').flatMap((sent) => sent.ids);
  expect(distinct(ids)).toBe(3);
  expect(backend.of('abandon').flatMap((sent) => sent.ids)).toEqual(ids.slice(0, 2));
});

test('an expired grant is never delivered', async () => {
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      Promise.resolve(granted(request, call, { countedFrom: call.now() - 30_000 })),
  });
  const lock = locksOn(backend).lock('a');
  expect(await rejectionOf(lock.tryAcquire())).toBe('LOCK_BACKEND');
  expect(await rejectionOf(lock.acquire({ waitMs: 100 }))).toBe('LOCK_BACKEND');
  expect(backend.of('abandon').length).toBeGreaterThanOrEqual(backend.of('attempt').length);
});

test('where no token is promised none is needed, and the lease has none', async () => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, fencing: 'none' },
    attempt: (request, _enqueue, call) =>
      Promise.resolve({ status: 'granted', grant: { request, countedFrom: call.now() } }),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  expect(lease.fencingToken).toBeUndefined();
});

test('the request has what the options say', async () => {
  let asked: AcquireRequest | undefined;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      asked = request;
      return Promise.resolve(granted(request, call));
    },
  });
  const lease = await locksOn(backend, { ttlMs: 7_000 }).lock('a').acquire({ label: 'the nightly job' });
  expect(asked).toEqual({
    resource: 'a',
    acquisitionId: lease.acquisitionId,
    label: 'the nightly job',
    mode: { kind: 'exclusive' },
    ttlMs: 7_000,
  });
  expect(lease.acquisitionId).toMatch(/^[\w-]{20,64}$/);
});

test('no two acquisitions have one id', () => {
  const ids = new Set<string>();
  for (let index = 0; index < 100_000; index += 1) ids.add(freshAcquisitionId());
  expect(ids.size).toBe(100_000);
});

test('a timeout names the holder, and for how long it has held', async () => {
  useFakeClock();
  const gaveUp = listenTo('locks:gave-up');
  const firstAnswers = listenTo('locks:contended');
  const mode = { kind: 'exclusive' } as const;
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: noAnswer,
    inspect: (resource) =>
      Promise.resolve({
        name: resource,
        holders: [{ acquisitionId: 'x', mode, label: 'worker-7:412', heldForMs: 61_000, expiresInMs: 900 }],
        waiters: [],
      }),
  });
  const waiting = locksOn(backend)
    .lock('a')
    .acquire({ waitMs: 500 })
    .catch((error: unknown) => error);
  await pass(500);
  const error = await waiting;
  expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', lockName: 'a', backend: 'scripted' });
  expect((error as Error).message).toContain('worker-7:412');
  expect(gaveUp).toMatchObject([{ name: 'a', error }]);
  expect(firstAnswers).toHaveLength(1);
});

test('a timeout after which nobody could say who holds says why', async () => {
  useFakeClock();
  const messageWith = async (inspect: LockBackend['inspect']): Promise<string> => {
    const backend = scriptedBackend({
      attempt: () => Promise.resolve(contended),
      awaitTurn: noAnswer,
      inspect,
    });
    const waiting = locksOn(backend)
      .lock('a')
      .acquire({ waitMs: 500 })
      .catch((error: unknown) => error);
    await pass(500);
    const error = await waiting;
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    return (error as Error).message;
  };
  expect(await messageWith(() => noAnswer())).toContain('the store did not say');
  expect(await messageWith(() => Promise.reject(new Error('NOAUTH')))).toContain('who holds it: NOAUTH');
});

test.each([
  { waitMs: 500, ttlMs: 30_000, tenure: 'lease', isSaid: true },
  { waitMs: 30_000, ttlMs: 30_000, tenure: 'lease', isSaid: false },
  { waitMs: 0, ttlMs: 30_000, tenure: 'lease', isSaid: false },
  { waitMs: 500, ttlMs: 30_000, tenure: 'session', isSaid: false },
  { waitMs: 30_000, ttlMs: 30_000, tenure: 'lease', marginMs: 2_000, isSaid: true },
] as const)(
  'a timeout says that a crashed holder outlasts a shorter wait: $waitMs, $ttlMs, $tenure, $marginMs',
  async (given) => {
    useFakeClock();
    const { waitMs, ttlMs, tenure, isSaid } = given;
    const margin = 'marginMs' in given ? { marginMs: given.marginMs } : {};
    const mode = { kind: 'exclusive' } as const;
    const backend = scriptedBackend({
      attempt: () => Promise.resolve(contended),
      awaitTurn: noAnswer,
      inspect: (resource) =>
        Promise.resolve({
          name: resource,
          holders: [{ acquisitionId: 'x', mode, ...(tenure === 'lease' && { expiresInMs: ttlMs }) }],
          waiters: [],
        }),
      capabilities: { ...capabilities, tenure, ttl: { ...capabilities.ttl, ...margin } },
    });
    const waiting = locksOn(backend, { ttlMs })
      .lock('a')
      .acquire({ waitMs })
      .catch((error: unknown) => error);
    await pass(waitMs + 100);
    const said = expect.stringContaining(`waitMs ${waitMs}, ttlMs ${ttlMs}`);
    expect(await waiting).toMatchObject({
      code: waitMs > 0 ? 'LOCK_TIMEOUT' : 'LOCK_CONTENDED',
      message: isSaid ? said : expect.not.stringContaining('crashed'),
    });
  },
);

test('a timeout in a process that holds the resource itself explains nesting', async () => {
  let taken = false;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      const answer = taken ? contended : granted(request, call);
      taken = true;
      return Promise.resolve(answer);
    },
  });
  const lock = locksOn(backend).lock('a');
  await lock.acquire();
  await expect(lock.acquire({ waitMs: 0 })).rejects.toMatchObject({
    code: 'LOCK_CONTENDED',
    message: expect.stringContaining('within'),
  });
});

test('a store that does not answer is LOCK_BACKEND, within waitMs', async () => {
  useFakeClock();
  const backend = scriptedBackend({ attempt: noAnswer, inspect: noAnswer });
  const waiting = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 800 }));
  await pass(799);
  expect(backend.of('abandon')).toEqual([]);
  await pass(1);
  await settled();
  expect(await waiting).toBe('LOCK_BACKEND');
  expect(backend.of('abandon')).toHaveLength(1);
});

/** After how many milliseconds a call on a store that does not answer rejects with `LOCK_BACKEND`. */
async function unansweredFor(
  call: (locks: Locks) => Promise<unknown>,
  options?: ManagerOptions,
): Promise<number> {
  const attempt = vi.fn<() => Promise<never>>(noAnswer);
  const many = { ...capabilities, modes: ['exclusive', 'shared', 'permit'], features: ['many'] } as const;
  const locks = locksOn(scriptedBackend({ attempt, attemptMany: attempt, capabilities: many }), options);
  const startedAt = performance.now();
  let endedAt = Number.NaN;
  const ended = rejectionOf(call(locks)).finally(() => (endedAt = performance.now()));
  await pass(600_000);
  expect(await ended).toBe('LOCK_BACKEND');
  expect(attempt).toHaveBeenCalledTimes(1);
  return endedAt - startedAt;
}

test('a single attempt on a store that does not answer ends after answerMs of the manager, or the ttl', async () => {
  useFakeClock();
  const pair = (locks: Locks) => locks.all([locks.lock('a'), locks.lock('b')]);
  const now = { waitMs: 0 };
  const attempts: ((locks: Locks) => Promise<unknown>)[] = [
    (locks) => locks.lock('a').tryAcquire(),
    (locks) => locks.lock('a', { waitMs: 100 }).tryAcquire(),
    (locks) => locks.readWriteLock('a').read.tryAcquire(),
    (locks) => locks.semaphore('a', 2).tryAcquire(),
    (locks) => pair(locks).tryAcquire(),
    (locks) => locks.lock('a').acquire(now),
    (locks) => locks.lock('a').run(() => {}, now),
    (locks) => pair(locks).run(() => {}, now),
  ];
  for (const attempt of attempts) {
    expect(await unansweredFor(attempt)).toBe(10_000);
    expect(await unansweredFor(attempt, { answerMs: 500 })).toBe(500);
    expect(await unansweredFor(attempt, { answerMs: 60_000, ttlMs: 20_000 })).toBe(20_000);
  }
});

test('tryAcquire takes no waitMs, and shows the call that does', async () => {
  const locks = locksOn(
    scriptedBackend({
      capabilities: { ...capabilities, modes: ['exclusive', 'shared', 'permit'] },
      downgrade: () => Promise.resolve({ status: 'held' }),
      resize: () => Promise.resolve({ status: 'set' }),
    }),
  );
  const tries = [
    locks.lock('a'),
    locks.readWriteLock('a').read,
    locks.semaphore('a', 2),
    locks.all([locks.lock('a'), locks.lock('b')]),
  ];
  for (const one of tries) {
    const outcome = one.tryAcquire({ waitMs: 500 } as object).catch((error: unknown) => error);
    expect(await outcome).toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
      message: expect.stringMatching(
        /^tryAcquire\(\) has no option "waitMs"\. It belongs to acquire\(\{ waitMs \}\).*\{ answerMs \}/,
      ),
    });
  }
});

test('an error that says only that there was no answer is explained by that of the connection', async () => {
  useFakeClock();
  const refused = new AggregateError([
    new Error('connect ECONNREFUSED ::1:1'),
    new Error('connect ECONNREFUSED 127.0.0.1:1'),
  ]);
  const explained = {
    code: 'LOCK_BACKEND',
    message: expect.stringMatching(/: connect ECONNREFUSED ::1:1, connect ECONNREFUSED 127.0.0.1:1$/),
    cause: refused,
  };
  const silent = scriptedBackend({ attempt: noAnswer, connectionError: () => refused });
  const waiting = expect(locksOn(silent).lock('a').acquire({ waitMs: 800 })).rejects.toMatchObject(explained);
  const failing = scriptedBackend({ attempt: () => Promise.reject(cut), connectionError: () => refused });
  await expect(locksOn(failing).lock('a').tryAcquire()).rejects.toMatchObject(explained);
  await pass(800);
  await waiting;
  const denied = new Error('NOPERM');
  const refusing = scriptedBackend({
    attempt: () => Promise.reject(denied),
    connectionError: () => refused,
    isRetryable: () => false,
  });
  await expect(locksOn(refusing).lock('a').acquire()).rejects.toMatchObject({ cause: denied });
});

test('a wait that was contended ends as a failure of the store where the client has no connection at the end', async () => {
  useFakeClock();
  let lost: Error | undefined;
  const seen: (string | undefined)[] = [];
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: noAnswer,
    connectionError: (request) => {
      seen.push(request?.acquisitionId);
      return lost;
    },
  });
  const lock = locksOn(backend).lock('a');
  const connected = rejectionOf(lock.acquire({ waitMs: 800 }));
  await pass(800);
  expect(await connected).toBe('LOCK_TIMEOUT');
  const cutOff = expect(lock.acquire({ waitMs: 800 })).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    cause: cut,
  });
  await pass(400);
  lost = cut;
  await pass(400);
  await cutOff;
  expect(seen).toContain(backend.of('attempt')[1]?.ids[0]);
});
