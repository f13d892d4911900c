import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { uptime } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { LockBackend, SlotEntry } from '@locks/core/backend';
import { describe, expect, it, test } from 'vitest';
import { fileSlots } from '../src/index.ts';
import { LockFolder } from '../src/lock-folder.ts';
import { checkOptions } from '../src/options.ts';
import { plant, recorded, statesAfter, treeOf } from './dropping-disk.ts';
import { call, clockOf, openWithClock, request, take, temporaryFolder, until } from './fixture.ts';

const entry = (token: bigint): SlotEntry => ({
  slot: `2030-01-0${token}`,
  state: 'done',
  token,
  label: 'machine-1',
  at: 1,
});

/** What a disk may have in the place of a file that was not synced. */
const REMAINS: Readonly<Record<string, (text: string) => string | undefined>> = {
  missing: () => undefined,
  empty: () => '',
  'cut off': (text) => text.slice(0, -1),
  'full of zeros': (text) => '\0'.repeat(text.length),
};

describe('a power cut on a disk that drops what was not synced', () => {
  it.each([
    ['the first slot of a folder that nobody had made', undefined, (): void => undefined],
    [
      'the first slot of a folder that the locks have just made',
      undefined,
      (folder: string): void => void mkdirSync(folder, { recursive: true }),
    ],
    ['the next slot', 1n, (): void => undefined],
  ])(
    'leaves a slot as it was or as it was written, and a slot that was answered stays: %s',
    async (_, former, make) => {
      const root = temporaryFolder();
      const within = (at: string) => join(at, 'shop', 'locks');
      if (former !== undefined) await fileSlots(within(root)).write('job', entry(former));
      const before = treeOf(root);
      const steps = await recorded(async () => {
        make(within(root));
        expect(await fileSlots(within(root)).write('job', entry(2n))).toBe(true);
      });
      let states = 0;
      for (let done = 0; done <= steps.length; done += 1) {
        const allowed = done === steps.length ? [2n] : [former, 2n];
        for (const tree of statesAfter(before, steps.slice(0, done))) {
          states += 1;
          const at = join(temporaryFolder(), `${states}`);
          plant(tree, root, at);
          const slots = fileSlots(within(at));
          const found = (await slots.read('job')).entry;
          expect(
            allowed,
            `after ${done} of ${JSON.stringify(steps)}: ${JSON.stringify([...tree])}`,
          ).toContain(found?.token);
          if (found !== undefined) expect(found).toEqual(entry(found.token));
          expect(await slots.write('job', entry(3n))).toBe(true);
          expect((await slots.read('job')).entry).toEqual(entry(3n));
        }
      }
      expect(states).toBeGreaterThan(20);
    },
  );

  it.each(Object.entries(REMAINS).filter(([state]) => state !== 'missing'))(
    'a slot that is %s all the same is told, and runs again once its file is deleted',
    async (_, remains) => {
      const folder = temporaryFolder();
      const slots = fileSlots(folder);
      await slots.write('job', entry(1n));
      const file = join(folder, 'once', 'job', '1');
      writeFileSync(file, remains(readFileSync(file, 'utf8')) ?? '');
      await expect(slots.read('job')).rejects.toMatchObject({
        code: 'VALUE_MISSING',
        message: expect.stringContaining(file),
      });
      rmSync(file);
      expect((await slots.read('job')).entry).toBeUndefined();
      expect(await slots.write('job', entry(2n))).toBe(true);
    },
  );
});

const LAST_MICROS = 9e9;
const TTL_MS = 400;

/** What is done to the folder of a boot. */
const DAMAGES: readonly (readonly [string, (path: string) => void])[] = [
  ...['values', 'wake files', 'pointers', 'the time of the boot'].flatMap((kind) =>
    Object.entries(REMAINS).map(([state, remains]) => {
      const hurt = (path: string): void => {
        for (const file of filesOf(kind, path)) {
          const text = remains(readFileSync(file, 'utf8'));
          if (text === undefined) unlinkSync(file);
          else writeFileSync(file, text);
        }
      };
      return [`${kind}: ${state}`, hurt] as const;
    }),
  ),
  [
    'the names of pointers before and after a write',
    (path: string) => {
      for (const file of filesOf('pointers', path)) {
        const [number = '', ...rest] = basename(file).split('.');
        const before = (Number.parseInt(number, 36) - 1).toString(36);
        writeFileSync(join(dirname(file), [before, ...rest].join('.')), '');
      }
    },
  ],
  ...['k', 'v', 'k/*', ''].map(
    (name) =>
      [
        `no ${name || 'folder of the boot'}`,
        (path: string) => {
          const paths =
            name === 'k/*'
              ? readdirSync(join(path, 'k')).map((key) => join(path, 'k', key))
              : [join(path, name)];
          for (const each of paths) rmSync(each, { recursive: true });
        },
      ] as const,
  ),
];

describe('what a power cut leaves of the locks', () => {
  it.each(DAMAGES)(
    'stops nobody for ever, grants nothing twice, and sets no token back: %s',
    async (_, hurt) => {
      for (const [boot, micros, isExact] of [
        ['second', 1e6, true],
        // Where boots cannot be told apart: the clock began anew, or has come to where it was while the lock was held.
        ['first', 1e6, false],
        ['first', LAST_MICROS + 1e5, false],
      ] as const) {
        const folder = join(temporaryFolder(), 'locks');
        const tokens = await useLocks(folder);
        hurt(join(folder, '1.first'));
        ageBefore(folder);
        const clock = clockOf(boot, micros, isExact);
        const [one, other] = [openWithClock(folder, clock), openWithClock(folder, clock)];
        for (const [name, token] of Object.entries(tokens)) {
          // Values that are gone fail a lock until its holds would have ended.
          const grant = await until(() => take(one, request(name)).catch(() => undefined), 5_000);
          expect(grant.fencingToken, `${name} in ${boot} at ${micros}`).toBeGreaterThan(token);
          expect(await other.attempt(request(name), false, call)).toMatchObject({ status: 'contended' });
          expect(await one.release(grant, call)).toBe('released');
          const next = await take(other, request(name));
          expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
        }
        expect(filesOf('the time of the boot', join(folder, `1.${boot}`)).length).toBeGreaterThan(0);
      }
    },
  );
});

test('the time of the boot is one number for all processes, until the boot is another one', () => {
  const folder = join(temporaryFolder(), 'locks');
  const sinceAt = (micros: number, isExact: boolean) =>
    new LockFolder(checkOptions(folder, undefined), clockOf('first', micros, isExact)).since;
  const since = sinceAt(LAST_MICROS, true);
  // The wall clock was set.
  expect(sinceAt(1e6, true)).toBe(since);
  const next = sinceAt(1e6, false);
  expect(next).toBeGreaterThan(since + LAST_MICROS - 2e6);
  expect(sinceAt(1e6, false)).toBe(next);
});

/** Leaves a lock that is held and waited for, and one that is free. Returns their last tokens. */
async function useLocks(folder: string): Promise<Readonly<Record<string, bigint>>> {
  const clock = clockOf('first', LAST_MICROS);
  const [holder, waiter] = [openWithClock(folder, clock), openWithClock(folder, clock)];
  const free = await take(holder, request('free'));
  await holder.release(free, call);
  const held = await take(holder, request('held', TTL_MS));
  await queue(waiter);
  mkdirSync(join(folder, '1.first', 't.1-1-1-left'));
  writeFileSync(join(folder, '1.first', 'v-wake-left'), '.');
  mkdirSync(join(folder, 't.1-1-1-left'));
  await Promise.all([holder.close(), waiter.close()]);
  return { free: free.fencingToken ?? 0n, held: held.fencingToken ?? 0n };
}

async function queue(waiter: Required<LockBackend>): Promise<void> {
  const waiting = request('held', TTL_MS);
  expect(await waiter.attempt(waiting, true, call)).toMatchObject({ status: 'contended' });
  // The end of the wait is that of its backend.
  void waiter.awaitTurn(waiting, call).catch(() => undefined);
  await until(async () => (await waiter.inspect('held', call)).waiters.length > 0);
}

function filesOf(kind: string, path: string): string[] {
  const [inFolder, pattern] = {
    values: ['v', /^(?!wake)/],
    'wake files': ['', /^v-wake-/],
    pointers: ['k', /\//],
    'the time of the boot': ['', /^since/],
  }[kind] as [string, RegExp];
  const files = (readdirSync(join(path, inFolder), { recursive: true }) as string[])
    .filter((name) => pattern.test(name))
    .map((name) => join(path, inFolder, name))
    .filter((file) => statSync(file).isFile());
  expect(files.length, kind).toBeGreaterThan(0);
  return files;
}

/** All was written before the machine started. */
function ageBefore(folder: string): void {
  const seconds = Date.now() / 1_000 - uptime() - 7_200;
  for (const name of readdirSync(folder, { recursive: true }) as string[])
    if (existsSync(join(folder, name))) utimesSync(join(folder, name), seconds, seconds);
}
