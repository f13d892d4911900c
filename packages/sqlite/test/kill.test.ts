import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Capacity, type LockMode } from '@locks/core/backend';
import { expect, onTestFinished, test } from 'vitest';
import { call, open, request, rowsIn, take, temporaryFolder, until } from './fixture.ts';

interface Note {
  readonly resource: string;
  readonly mode: LockMode;
  readonly token: string;
  readonly what: 'enter' | 'exit';
  readonly at: string;
  /** How long the lease is valid, as its holder counts it. */
  readonly leftMs: number;
}

const ttlMs = 400;
const KILLS = 30;
const resources = ['n', 'r', 's'].flatMap((kind) => Array.from({ length: 4 }, (_, n) => `${kind}${n}`));

test('kill -9 at any moment leaves a sound file, exclusion and rising tokens', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'locks.db');
  const log = join(folder, 'log');
  const alive = new Set<ChildProcess>();
  const start = (): void => {
    const child = fork(new URL('./hammer-main.ts', import.meta.url), [
      path,
      log,
      String(ttlMs),
      ...resources,
    ]);
    alive.add(child);
    child.once('exit', () => alive.delete(child));
  };
  onTestFinished(() => {
    for (const child of alive) child.kill('SIGKILL');
  });
  for (let n = 0; n < 4; n += 1) start();
  const notes = (): Note[] => {
    const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean);
    const whole = lines.filter((line) => /"leftMs":[^{}]+\}$/.test(line));
    // Only a killed process leaves half a line.
    expect(lines.length - whole.length).toBeLessThanOrEqual(KILLS);
    return whole.map((line) => JSON.parse(line) as Note);
  };
  await until(() => statSync(log, { throwIfNoEntry: false }), 20_000);

  for (let kills = 0; kills < KILLS; kills += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 200));
    const [victim] = [...alive].sort(() => Math.random() - 0.5);
    const ended = victim && once(victim, 'exit');
    victim?.kill('SIGKILL');
    await ended;
    start();
  }
  // After the last kill all of them still get their turns.
  const before = notes().length;
  await until(() => notes().length > before + 200, 20_000);
  const ended = [...alive].map((child) => once(child, 'exit'));
  for (const child of alive) child.send('stop');
  await Promise.all(ended);

  checkHistory(notes());
  const { backend } = open(path);
  for (const name of resources) {
    await until(async () => {
      const { holders, waiters } = await backend.inspect(name, call);
      return holders.length + waiters.length === 0;
    });
  }
  // The first write of a backend removes the dead entries.
  await backend.release(await take(backend, request('another')), call);
  await backend.close();
  expect(rowsIn(path)).toMatchObject({ waiters: 0 });
  const db = new DatabaseSync(path);
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  // Killed waiters leave no file that nobody will remove.
  const clients = db.prepare('SELECT client FROM clients').all();
  const known = clients.map(({ client }) => `locks.db-wake-${client}`);
  expect(known).toEqual(
    expect.arrayContaining(readdirSync(folder).filter((name) => name.includes('-wake-'))),
  );
  db.close();
  expect(statSync(path).size).toBeLessThan(1_000_000);
}, 90_000);

/** Holders fit together at all times, and nobody follows a killed one before its lease was over. */
function checkHistory(notes: readonly Note[]): void {
  const inside = new Map<string, Map<string, Note>>();
  const tokens = new Set<string>();
  const highest = new Map<string, bigint>();
  let orphans = 0;
  const mayHaveEnded = (entered: Note, at: string): boolean =>
    Number(BigInt(at) - BigInt(entered.at)) / 1e6 > entered.leftMs;
  const entries = new Map<string, Note>();
  for (const note of [...notes].sort((a, b) => (BigInt(a.at) < BigInt(b.at) ? -1 : 1))) {
    const { resource, token, what, at, mode } = note;
    const here = inside.get(resource) ?? new Map<string, Note>();
    inside.set(resource, here);
    if (what === 'exit') {
      // On a busy machine a process may stand still inside for longer than its lease, and leave after the next one came.
      const entered = entries.get(token) as Note;
      expect(here.delete(token) || mayHaveEnded(entered, at)).toBe(true);
      continue;
    }
    const capacity = new Capacity();
    for (const [other, entered] of here) {
      if (mayHaveEnded(entered, at)) {
        orphans += 1;
        here.delete(other);
      } else {
        expect(capacity.take(entered.mode)).toBe(true);
      }
    }
    expect(capacity.take(mode), `${JSON.stringify(note)} beside ${JSON.stringify([...here.values()])}`).toBe(
      true,
    );
    expect(tokens.has(token)).toBe(false);
    tokens.add(token);
    // Those who enter together may write their notes in any order; one who is alone comes after all before it.
    const last = highest.get(resource) ?? 0n;
    if (mode.kind === 'exclusive') expect(BigInt(token)).toBeGreaterThan(last);
    highest.set(resource, BigInt(token) > last ? BigInt(token) : last);
    here.set(token, note);
    entries.set(token, note);
  }
  // Otherwise the kills met no holder, and the test has shown less than its title says.
  expect(orphans).toBeGreaterThan(3);
}
