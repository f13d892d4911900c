import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { examineSqlite } from '../src/doctor.ts';
import { SqliteFileError } from '../src/index.ts';
import { networkFinding } from '../src/network-finding.ts';

it('examines the folder from a program, and makes no file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'locks-doctor-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { explain, ...seen } = await examineSqlite(join(folder, 'locks.db'));
  expect(seen).toEqual({
    ...{ store: 'sqlite', version: process.versions['sqlite'] },
    ...{ findings: [], isUnused: true },
  });
  expect(readdirSync(folder)).toEqual([]);
  const full = new Error('the lock failed', { cause: new SqliteFileError('FULL', 'the disk is full') });
  expect(explain?.(full)).toMatchObject({ id: 'sqlite/disk-full', severity: 'error' });
  expect(explain?.(new Error('another'))).toBeUndefined();
  const { findings } = await examineSqlite(join(folder, 'missing', 'locks.db'));
  expect(findings).toMatchObject([{ id: 'sqlite/cannot-open', severity: 'error' }]);
});

it('sqlite/network-file-system: by the number of the file system', () => {
  expect(networkFinding('/mnt', 0x6969)).toMatchObject({
    id: 'sqlite/network-file-system',
    severity: 'error',
  });
  // ext4 and tmpfs.
  expect([networkFinding('/mnt', 0xef53), networkFinding('/mnt', 0x01021994)]).toEqual([
    undefined,
    undefined,
  ]);
});
