import { expect, test } from 'vitest';
import { matching, optional, readOptions, text } from '../src/backend/read-options.ts';
import { createLocks } from '../src/create-locks.ts';
import { locked } from '../src/compose/locked.ts';
import { isLockError } from '../src/errors.ts';
import { adopt, transfer } from '../src/transfer/index.ts';
import { locksOn } from './fixture.ts';
import { scriptedBackend } from './scripted-backend.ts';

class Pool {
  readonly _events = {};
  query(): void {}
}

const isPool = (value: unknown): value is Pool =>
  typeof (value as Partial<Pool> | null)?.query === 'function';
const table = {
  name: optional(text('a name', /./)),
  anything: (value: unknown) => value,
  pool: matching('a pool', isPool),
};

async function refusalOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (isLockError(error, 'LOCK_INVALID_ARGUMENT')) return error.message;
    throw error;
  }
  throw new Error('nothing was refused');
}

const locks = locksOn(scriptedBackend());

test.each<[string, () => unknown, RegExp, RegExp?]>([
  [
    'a client in place of the options',
    () => readOptions('backend()', new Pool(), table),
    /an object of Pool\. Pass \{ pool \}/,
    /_events/,
  ],
  [
    'a client that is a function in place of the options',
    () =>
      readOptions(
        'backend()',
        Object.assign(() => {}, { query() {} }),
        table,
      ),
    /a function\. Pass \{ pool \}/,
  ],
  [
    'an object of a class that is no option',
    () =>
      readOptions(
        'backend()',
        new (class Url {
          a = 1;
        })(),
        table,
      ),
    /not an object of Url\.$/,
  ],
  ['no locks', () => locks.all([]), /all\(\): the locks .*at least one lock, not an empty array/],
  [
    'no backend',
    () => createLocks(undefined as never),
    /takes a backend, as redisBackend\(client\) returns it, not undefined\.$/,
    /spec/,
  ],
  [
    'a client in place of the backend',
    () => createLocks(new Pool() as never),
    /takes a backend, as redisBackend\(client\) returns it, not an object of Pool\.$/,
    /spec/,
  ],
  [
    'a ticket alone',
    () => adopt('{"version":1}' as never, undefined as never),
    /first argument must be a lock manager/,
  ],
  [
    'a ticket as text',
    () => adopt(locks, '{"version":1}' as never),
    /what transfer\(\) gave, not a string\. .*JSON\.parse/,
  ],
  [
    'no ticket',
    () => adopt(locks, undefined as never),
    /the ticket must be what transfer\(\) gave, not undefined/,
  ],
  [
    'no work',
    () => locks.lock('a').run(undefined as never),
    /^run\(\): the work must be a function, not undefined/,
  ],
  [
    'a promise of work',
    () => locks.lock('a').run(Promise.resolve() as never),
    /not a promise: await it first/,
  ],
  [
    'an async function for the name',
    () => locked(locks, (async () => 'a') as never, () => {})(),
    /function for the name returned a promise/,
  ],
  [
    'a lease of another copy',
    () => transfer({ acquisitionId: 'x', release() {} } as never),
    /another copy of @locks\/core/,
    /LeaseHandle/,
  ],
  ['a multi-lease', () => transfer({ leases: [], release() {} } as never), /one lease, not a multi-lease/],
  [
    'a foreign lease as within',
    () => locks.lock('a').acquire({ within: { acquisitionId: 'x' } as never }),
    /another copy/,
  ],
])('%s is refused with what to do', async (_, work, says, saysNot) => {
  const message = await refusalOf(work);
  expect(message).toMatch(says);
  if (saysNot !== undefined) expect(message).not.toMatch(saysNot);
});
