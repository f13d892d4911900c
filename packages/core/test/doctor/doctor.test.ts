import { expect, it } from 'vitest';
import { clockDifference, failureOf, found, oldVersion } from '../../src/doctor/index.ts';
import { LockError } from '../../src/index.ts';

const MARIADB = { oldest: '10.5', tested: '10.11' };

// As servers write their versions.
it.each([
  ['10.4.34-MariaDB', 'error', '10.11'],
  ['10.6.23-MariaDB', 'warning', '10.11'],
  ['10.11.6-MariaDB-0+deb12u1', undefined, undefined],
  ['11.4', undefined, undefined],
])('a server of version %s: %s', (version, severity, upgradeTo) => {
  const finding = oldVersion('mysql', version, MARIADB, 'mariadb');
  expect(finding?.severity).toBe(severity);
  if (upgradeTo !== undefined)
    expect(finding).toMatchObject({
      id: 'mysql/version',
      what: expect.stringContaining(`mariadb ${version}`) as string,
      toDo: `upgrade the server to ${upgradeTo} or newer`,
    });
});

it('compares versions number by number, with zeros for what is missing', () => {
  const redis = { oldest: '6.2', tested: '6.2' };
  expect(oldVersion('redis', '6.0.16', redis)).toMatchObject({ id: 'redis/version', severity: 'error' });
  expect(oldVersion('redis', '6', redis)).toMatchObject({ severity: 'error' });
  expect(found(oldVersion('redis', '6.2', redis), oldVersion('redis', '6.10', redis))).toEqual([]);
});

it('says how far a clock is ahead or behind, and nothing within a second', async () => {
  const apart = (ms: number) => clockDifference('redis', () => Promise.resolve(Date.now() + ms));
  expect(await apart(500)).toBeUndefined();
  expect(await apart(60_000)).toMatchObject({
    id: 'redis/clock',
    what: expect.stringMatching(/(59\.9|60\.0) s ahead of/) as string,
  });
  expect((await apart(-60_000))?.what).toMatch(/60\.\d s behind/);
  // A time in whole seconds may be almost a second early.
  expect(await clockDifference('etcd', () => Promise.resolve(Date.now() - 1_900), 1_000)).toBeUndefined();
});

it('reads the messages of causes once, and the codes of all', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  const says = new LockError('LOCK_BACKEND', 'redis cannot be reached', { cause: refused });
  expect(failureOf(says)).toEqual({
    message: 'redis cannot be reached (connect ECONNREFUSED)',
    codes: ['LOCK_BACKEND', 'ECONNREFUSED'],
  });
  expect(failureOf(new Error(`no: ${refused.message}`, { cause: refused })).message).toBe(
    'no: connect ECONNREFUSED',
  );
  const nowhere = new AggregateError([refused, new Error('connect EHOSTUNREACH')]);
  expect(failureOf(nowhere).message).toBe('connect ECONNREFUSED, connect EHOSTUNREACH');
  expect(failureOf('thrown')).toEqual({ message: 'thrown', codes: [] });
});
