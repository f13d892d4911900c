import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { examineFile } from '../src/doctor.ts';
import { fileBackend, LockFolderError } from '../src/index.ts';
import { checkOptions } from '../src/options.ts';
import { open, temporaryFolder } from './fixture.ts';

test.for([undefined, '', 'a\0b', 5, { folder: './locks' }])('%o is no folder', (given) => {
  expect(() => fileBackend(given as never)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }) as Error,
  );
});

test('the folder is the one that the path means when the backend is made', () => {
  expect(checkOptions('./locks', undefined)).toEqual({
    folder: resolve('locks'),
    shared: false,
    watch: true,
    maxPollMs: 25,
  });
});

test('a backend that is made and closed touches nothing', async () => {
  const above = temporaryFolder();
  const { backend } = open(join(above, 'locks'));
  expect(backend.capabilities).toMatchObject({ reach: 'host', ttl: { minMs: 20 }, expiry: 'clock' });
  await backend.close();
  expect(readdirSync(above)).toEqual([]);
});

test('examines the folder from a program, and makes nothing', async () => {
  const above = mkdtempSync(join(tmpdir(), 'locks-doctor-'));
  onTestFinished(() => rmSync(above, { recursive: true }));
  const { explain, ...seen } = await examineFile(join(above, 'a', 'locks'));
  expect(seen).toEqual({ store: 'file', version: undefined, findings: [], isUnused: true });
  expect(readdirSync(above)).toEqual([]);
  const full = new Error('the lock failed', { cause: new LockFolderError('FULL', 'the disk is full') });
  expect(explain?.(full)).toMatchObject({ id: 'file/disk-full', severity: 'error' });
  expect(explain?.(new Error('another'))).toBeUndefined();
});
