import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createLocks } from '@locks/core';
import { sqliteBackend } from '@locks/sqlite';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '@locks/core/doctor';
import { folder, MAIN } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

/** A file with locks. */
async function lockFile(): Promise<string> {
  const file = join(folder(), 'locks.db');
  await using locks = createLocks(sqliteBackend(file));
  await locks.lock('first').run(() => undefined);
  return file;
}

async function found(file: string): Promise<Record<string, string>> {
  return severities(await diagnose(`sqlite:${file}`));
}

/** Mounts need such a user. */
const isLinuxRoot = process.platform === 'linux' && process.getuid?.() === 0;

/**
 * Starts a program that takes one lock after another, each with a new connection to the file, where the system says that this is
 * another boot than ours: as on another machine. The mount ends with the program.
 */
function startOnAnotherMachine(file: string): ChildProcess {
  const program = `
    import { sqliteBackend } from '@locks/sqlite';
    import { createLocks } from '@locks/core';
    for (;;) {
      const locks = createLocks(sqliteBackend(process.argv[1]));
      await locks.lock('other').run(() => undefined, { waitMs: 1_000 }).catch(() => undefined);
      await locks.close();
    }`;
  const boot = join(folder(), 'boot_id');
  writeFileSync(boot, `${randomUUID()}\n`);
  const script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';
  const node = [process.execPath, '--input-type=module', '-e', program, file];
  return spawn('unshare', ['--mount', 'sh', '-c', script, boot, ...node], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
  });
}

describe('locks doctor on SQLite', () => {
  it('finds nothing where nothing is wrong', async () => {
    const file = await lockFile();
    expect(await diagnose(`sqlite:${file}`)).toEqual({
      store: 'sqlite',
      version: process.versions['sqlite'],
      findings: [],
    });
  });

  it('makes no file where there is none yet', async () => {
    const dir = folder();
    expect(await found(join(dir, 'locks.db'))).toEqual({});
    expect(readdirSync(dir)).toEqual([]);
  });

  it('sqlite/cannot-open: there is no folder, a folder in its place, a second name', async () => {
    expect(await found(join(folder(), 'missing', 'locks.db'))).toEqual({ 'sqlite/cannot-open': 'error' });
    expect(await found(folder())).toEqual({ 'sqlite/cannot-open': 'error' });
    const file = await lockFile();
    linkSync(file, `${file}.link`);
    expect(await found(file)).toEqual({ 'sqlite/cannot-open': 'error' });
  });

  it('sqlite/foreign-file: the file is no file of locks', async () => {
    const file = join(folder(), 'text');
    writeFileSync(
      file,
      'This is a text, and no database: it is longer than a page needs to be read.\n'.repeat(20),
    );
    expect(await found(file)).toEqual({ 'sqlite/foreign-file': 'error' });
  });

  it.each([0, 99])('sqlite/layout: another version, %d, made the file', async (version) => {
    const file = await lockFile();
    const db = new DatabaseSync(file);
    db.exec(`PRAGMA user_version = ${version}`);
    db.close();
    expect(await found(file)).toEqual({ 'sqlite/layout': 'error' });
  });

  it('sqlite/trial: a table is gone', async () => {
    const file = await lockFile();
    const db = new DatabaseSync(file);
    db.exec('DROP TABLE holds');
    db.close();
    expect(await found(file)).toEqual({ 'sqlite/trial': 'error' });
  });

  it('sqlite/corrupt: a part of the file is lost', async () => {
    const file = await lockFile();
    truncateSync(file, 4_096 + 100);
    expect(await found(file)).toEqual({ 'sqlite/corrupt': 'error' });
  });

  it.runIf(isLinuxRoot)(
    'sqlite/two-machines: a program of another machine takes locks in the same file',
    async () => {
      const file = await lockFile();
      const other = startOnAnotherMachine(file);
      try {
        // The other program takes the file over whenever it opens it: mostly, but not always, while the doctor tries its locks.
        await waitUntil(async () => 'sqlite/two-machines' in (await found(file)), {
          what: 'a look while the other program uses the file',
          timeoutMs: 20_000,
        });
      } finally {
        other.kill('SIGKILL');
      }
    },
  );

  it('sqlite/busy: a program keeps a transaction open', async () => {
    const file = await lockFile();
    const db = new DatabaseSync(file);
    db.exec('BEGIN IMMEDIATE');
    expect(await found(file)).toEqual({ 'sqlite/busy': 'error' });
    db.close();
  });

  it.runIf(isLinuxRoot)(
    'sqlite/disk-space, sqlite/disk-full, sqlite/read-only: a disk that is small, full, or cannot be written',
    () => {
      // The mount ends with the namespace of the shell.
      const script = `export LOCKS_URL="sqlite:$0/locks.db"; mount -t tmpfs -o size=4m none "$0" &&
        "$1" "$2" run first -- true && "$1" "$2" doctor --json &&
        { dd if=/dev/zero of="$0/filler" bs=4k 2>&-; "$1" "$2" doctor --json; } ||
        { rm "$0/filler"; mount -o remount,ro "$0"; "$1" "$2" doctor --json; }`;
      const args = ['--mount', 'sh', '-c', script, folder(), process.execPath, MAIN];
      const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
      expect(stderr).toBe('');
      const diagnoses = stdout
        .trimEnd()
        .split('\n')
        .map((line) => severities(JSON.parse(line) as Diagnosis));
      const small = { 'sqlite/disk-space': 'warning' };
      expect(diagnoses).toEqual([
        small,
        { ...small, 'sqlite/disk-full': 'error' },
        { ...small, 'sqlite/read-only': 'error' },
      ]);
    },
  );
});
