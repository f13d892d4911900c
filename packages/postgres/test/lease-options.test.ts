import { isLockError } from '@locks/core';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { postgresLeaseBackend, type PostgresLeaseOptions, schemaStatements } from '../src/index.ts';
import { isRetryablePostgresError } from '../src/driver/retryable.ts';

const url = 'postgres://nobody@127.0.0.1:1/nowhere';

describe('the options of postgresLeaseBackend', () => {
  const bad: readonly [string, unknown, unknown?][] = [
    ['nothing', undefined],
    ['options first', { schema: 'a' }],
    ['the pool in an object', { pool: new pg.Pool() }],
    ['a single client', new pg.Client()],
    ['another kind of URL', 'mysql://host/db'],
    ['an unknown option', url, { channel: 'x' }],
    ['a pool among the options', url, { pool: new pg.Pool() }],
    ['null as the options', url, null],
    ['an empty schema', url, { schema: '' }],
    ['a schema that would end its quotes', url, { schema: 'a"b' }],
    ['a schema that would end its body', url, { schema: 'a$$b' }],
    ['a schema that the server would cut off', url, { schema: 's'.repeat(64) }],
    ['a listener nowhere', url, { listen: {} }],
    ['a listener by its old name', url, { listen: { connectionString: url } }],
    ['a listener that is a text', url, { listen: 'yes' }],
    ['an autoPrepare that is a number', url, { autoPrepare: 1 }],
    ['the old name of autoPrepare', url, { migrate: false }],
  ];
  it.each(bad)('%s is refused', (_, source, options) => {
    const refused = (() => {
      try {
        postgresLeaseBackend(source as string, options as PostgresLeaseOptions);
      } catch (error) {
        return error;
      }
      return undefined;
    })();
    expect(isLockError(refused, 'LOCK_INVALID_ARGUMENT')).toBe(true);
  });

  it('a bad connection string is not shown: it may hold a password', () => {
    expect(() => postgresLeaseBackend('http://me:secret@host/')).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('secret') }) as Error,
    );
  });

  it('building a backend connects nowhere, and closing it needs no server', async () => {
    await postgresLeaseBackend(url).close();
    await postgresLeaseBackend(new pg.Pool({ connectionString: url }), { schema: 'My-locks_2' }).close();
  });

  it('the SQL of a schema names it everywhere', () => {
    const sql = schemaStatements({ schema: 'shop' }).join('\n');
    expect(sql).not.toContain('@schema@');
    expect(sql).toContain('CREATE TABLE "shop".locks');
  });
});

describe('an error of the server', () => {
  const coded = (code: string): Error => Object.assign(new Error('refused'), { code });
  it.each(['08006', '57P01', '57P03', '53300', '40001', '40P01', '57014', '25006', 'ECONNREFUSED', '26000'])(
    '%s may pass',
    (code) => {
      expect(isRetryablePostgresError(coded(code))).toBe(true);
    },
  );
  it.each(['28P01', '42501', '42883', 'LK001', '3D000', 'ERR_INVALID_ARG_TYPE'])('%s stays', (code) => {
    expect(isRetryablePostgresError(coded(code))).toBe(false);
  });
  it('a silent connection may pass, and so may one of several addresses', () => {
    expect(isRetryablePostgresError(new Error('Query read timeout'))).toBe(true);
    expect(isRetryablePostgresError(new AggregateError([coded('ECONNREFUSED')]))).toBe(true);
    expect(isRetryablePostgresError('text')).toBe(false);
  });
});
