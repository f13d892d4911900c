import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import { recordTrace } from '@locks/history';
import { sqliteBackend } from '@locks/sqlite';
import { beforeAll, describe, expect, it } from 'vitest';
import { locks, locksHere } from './program.ts';

const folder = mkdtempSync(join(tmpdir(), 'locks-verify-'));
const good = join(folder, 'good.jsonl');

beforeAll(async () => {
  const manager = createLocks(sqliteBackend(join(folder, 'locks.db')));
  const trace = recordTrace(good);
  await manager.lock('stock').run(() => {});
  await manager.close();
  await trace.close();
});

/** The trace of another process of the same machine, changed by a test. */
function other(name: string, change: (text: string) => string): string {
  const file = join(folder, name);
  writeFileSync(file, change(readFileSync(good, 'utf8')));
  return file;
}

describe('locks verify', () => {
  it('tells which rules were checked how often, and ends with 0 where none was broken', async () => {
    const { code, stdout, stderr } = await locks('', 'verify', good);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^\d+ lines of 1 process on 1 machine\n1 acquisition, of which 1 held\n/);
    expect(stdout).toMatch(/^kept {5}§11\.1 .*: 1$/m);
    expect(stdout).toMatch(/\nno rule was broken\n$/);
  });

  it('merges the files of several processes, and names the lines of a violation', async () => {
    const same = other('same.jsonl', (text) => text.replaceAll(/"id":"./g, '"id":"-'));
    const { code, stdout } = await locksHere('', 'verify', good, same);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^violated §6\.6 /m);
    expect(stdout).toContain(`  ${good}:4\n`);
    expect(stdout).toContain(`  ${same}:4\n`);
  });

  it('tells a line that is not of a trace, and takes a last line that ends too early for one of a killed process', async () => {
    const killed = other('killed.jsonl', (text) => text.slice(0, -20));
    expect(await locksHere('', 'verify', killed)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/killed\.jsonl:\d+: the line ends too early/) as string,
    });
    const bad = other('bad.jsonl', (text) => text.replace('"believes"', '"dreams"'));
    expect(await locksHere('', 'verify', bad)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/bad\.jsonl:5: not a line of a trace: .*"dreams"/) as string,
    });
  });

  it('writes the verdict for programs', async () => {
    const { code, stdout } = await locksHere('', 'verify', good, '--json', '--skew', '5ms', '--idle', '1s');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      processes: 1,
      skewMs: 5,
      violations: [],
      malformed: [],
      truncated: [],
    });
  });

  it('refuses a command line without files, and a file that is not there', async () => {
    expect(await locksHere('', 'verify')).toMatchObject({ code: 64 });
    expect(await locksHere('', 'verify', join(folder, 'none'))).toMatchObject({ code: 69 });
    expect(await locksHere('', 'verify', good, '--', 'true')).toMatchObject({ code: 64 });
  });
});
