import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bootFolder, call, open, temporaryFolder, until } from './fixture.ts';

interface Note {
  readonly resource: string;
  readonly kind: 'exclusive' | 'shared';
  readonly token: string;
  readonly what: 'enter' | 'exit';
  readonly at: string;
  /** How long the lease is valid, as its holder counts it. */
  readonly leftMs: number;
}

const ttlMs = 400;
const KILLS = Number(process.env['LOCKS_KILLS'] ?? 60);
const resources = ['n0', 'n1', 'n2', 'r0', 'r1', 'r2'];

test(
  'kill -9 at any moment leaves exclusion, rising tokens, and nothing behind',
  async () => {
    const temporary = temporaryFolder();
    const [folder, log] = [join(temporary, 'locks'), join(temporary, 'log')];
    const alive = new Set<ChildProcess>();
    /** Those that have held a lock: a kill of the others would meet nothing. */
    const working = new Set<ChildProcess>();
    const start = (): void => {
      const args = [folder, log, String(ttlMs), ...resources];
      const child = fork(new URL('./hammer-main.ts', import.meta.url), args);
      alive.add(child);
      child.once('message', () => working.add(child));
      child.once('exit', () => {
        alive.delete(child);
        working.delete(child);
      });
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
    await until(() => existsSync(log), 20_000);

    for (let kills = 0; kills < KILLS; kills += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 150));
      await until(() => working.size > 0, 20_000);
      const [victim] = [...working].sort(() => Math.random() - 0.5);
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
    const { backend } = open(folder);
    for (const name of resources)
      await until(async () => {
        const { holders, waiters } = await backend.inspect(name, call);
        return holders.length + waiters.length === 0;
      });
    // The first write of a backend sweeps: one file of values remains, its own, and no heartbeat but that of nobody.
    await backend.release((await taken(backend)).grant, call);
    const boot = bootFolder(folder);
    await until(() => readdirSync(join(boot, 'v')).length === 1, 10_000);
    expect(readdirSync(join(boot, 'k')).filter((name) => name.startsWith('client'))).toEqual([]);
    expect(readdirSync(boot).filter((name) => !/^([kv]|since\..*)$/.test(name))).toEqual([]);
  },
  60_000 + KILLS * 3_000,
);

async function taken(backend: ReturnType<typeof open>['backend']) {
  const request = {
    resource: 'another',
    acquisitionId: 'another',
    mode: { kind: 'exclusive' },
    ttlMs,
  } as const;
  const attempt = await backend.attempt(request, false, call);
  if (attempt.status !== 'granted') throw new Error(`it is ${attempt.status}`);
  return attempt;
}

/** Holders fit together at all times, and nobody follows a killed one before its lease was over. */
function checkHistory(notes: readonly Note[]): void {
  const inside = new Map<string, Map<string, Note>>();
  const entries = new Map<string, Note>();
  const highest = new Map<string, bigint>();
  let orphans = 0;
  const mayHaveEnded = (entered: Note, at: string): boolean =>
    Number(BigInt(at) - BigInt(entered.at)) / 1e6 > entered.leftMs;
  for (const note of [...notes].sort((a, b) => (BigInt(a.at) < BigInt(b.at) ? -1 : 1))) {
    const { resource, token, what, at, kind } = note;
    const entry = `${resource}/${token}`;
    const here = inside.get(resource) ?? new Map<string, Note>();
    inside.set(resource, here);
    if (what === 'exit') {
      // On a busy machine a process may stand still inside for longer than its lease, and leave after the next one came.
      expect(here.delete(token) || mayHaveEnded(entries.get(entry) as Note, at)).toBe(true);
      continue;
    }
    for (const [other, entered] of here) {
      if (mayHaveEnded(entered, at)) {
        orphans += 1;
        here.delete(other);
      } else {
        expect([kind, entered.kind], `${JSON.stringify(note)} beside ${JSON.stringify(entered)}`).toEqual([
          'shared',
          'shared',
        ]);
      }
    }
    expect(entries.has(entry)).toBe(false);
    // Those who enter together may write their notes in any order; one who is alone comes after all before it.
    const last = highest.get(resource) ?? 0n;
    if (kind === 'exclusive') expect(BigInt(token)).toBeGreaterThan(last);
    highest.set(resource, BigInt(token) > last ? BigInt(token) : last);
    here.set(token, note);
    entries.set(entry, note);
  }
  // Otherwise the kills met no holder, and the test has shown less than its title says.
  expect(orphans).toBeGreaterThan(3);
}
