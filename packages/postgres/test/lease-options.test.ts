import { isLockError } from '@locks/core';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { leaseSchemaSql, postgresLeaseBackend, type PostgresLeaseOptions } from '../src/index.ts';
import { isRetryablePostgresError } from '../src/driver/retryable.ts';

const url = 'postgres://nobody@127.0.0.1:1/nowhere';

describe('the options of postgresLeaseBackend', () => {
  const bad: readonly [string, unknown][] = [
    ['no object', undefined],
    ['no source', {}],
    ['two sources', { pool: new pg.Pool(), connectionString: url }],
    ['a single client', { pool: new pg.Client() }],
    ['another kind of URL', { connectionString: 'mysql://host/db' }],
    ['an unknown option', { connectionString: url, channel: 'x' }],
    ['an empty schema', { connectionString: url, schema: '' }],
    ['a schema that would end its quotes', { connectionString: url, schema: 'a"b' }],
    ['a schema that would end its body', { connectionString: url, schema: 'a$$b' }],
    ['a schema that the server would cut off', { connectionString: url, schema: 's'.repeat(64) }],
    ['a listener nowhere', { connectionString: url, listen: {} }],
    ['a listener that is a text', { connectionString: url, listen: 'yes' }],
    ['a migration that is a number', { connectionString: url, migrate: 1 }],
  ];
  it.each(bad)('%s is refused', (_, options) => {
    const refused = (() => {
      try {
        postgresLeaseBackend(options as PostgresLeaseOptions);
      } catch (error) {
        return error;
      }
      return undefined;
    })();
    expect(isLockError(refused, 'LOCK_INVALID_ARGUMENT')).toBe(true);
  });

  it('a bad connection string is not shown: it may hold a password', () => {
    expect(() => postgresLeaseBackend({ connectionString: 'http://me:secret@host/' })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('secret') }) as Error,
    );
  });

  it('building a backend connects nowhere, and closing it needs no server', async () => {
    await postgresLeaseBackend({ connectionString: url }).close();
    await postgresLeaseBackend({
      pool: new pg.Pool({ connectionString: url }),
      schema: 'My-locks_2',
    }).close();
  });

  it('the SQL of a schema names it everywhere', () => {
    const sql = leaseSchemaSql('shop');
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
