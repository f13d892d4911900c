import { readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { LockFolder } from '../src/lock-folder.ts';
import { checkOptions } from '../src/options.ts';
import { latest, pointerIn } from '../src/pointer.ts';
import { hasEnded, processMark } from '../src/process-mark.ts';
import { RecordFiles } from '../src/record-files.ts';
import { FolderSweeper } from '../src/folder-sweeper.ts';
import {
  acquire,
  bootFolder,
  call,
  open,
  ownClock,
  pointerOf,
  recordFolder,
  request,
  take,
  temporaryFolder,
} from './fixture.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const DEAD = `${(2 ** 22 + 1).toString(36)}-1-${processMark().split('-')[2]}-000000000000`;

function records(folder = join(temporaryFolder(), 'locks')) {
  const files = new RecordFiles(new LockFolder(checkOptions(folder, undefined), ownClock()), false);
  onTestFinished(() => files.values.close());
  return { files, folder, path: join(files.folder.keys, 'lock=2fa') };
}

const pointer = (version: string | undefined) =>
  pointerIn(version ?? '') as NonNullable<ReturnType<typeof pointerIn>>;
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

/** Moves the values of a process into the file of one that has ended. */
function killWriter(files: RecordFiles, path: string): string {
  const { pointer: found } = files.read(path) ?? {};
  if (found === undefined) throw new Error('there is no record');
  renameSync(join(files.folder.values, found.writer), join(files.folder.values, DEAD));
  const name = found.name.replace(found.writer, DEAD);
  renameSync(join(path, found.name), join(path, name));
  files.values.close();
  return name;
}

test('of two writers that know the same version one writes', () => {
  const { files, folder, path } = records();
  const other = records(folder).files;
  const first = files.create(path, { value: bytes('{1'), isIdle: false });
  expect(other.create(path, { value: bytes('{2'), isIdle: false })).toBeUndefined();
  const second = other.replace(path, first ?? '', { value: bytes('{2'), isIdle: false });
  expect(second).toBeDefined();
  expect(files.replace(path, first ?? '', { value: bytes('{3'), isIdle: false })).toBeUndefined();
  expect(text(files.read(path)?.value)).toBe('{2');
});

test('a writer that stood still through any number of writes, a deletion and a new record writes nothing', () => {
  const { files, folder, path } = records();
  const still = records(folder).files;
  const first = files.create(path, { value: bytes('{1'), isIdle: false });
  let version = first;
  for (let n = 0; n < 500; n += 1)
    version = files.replace(path, version ?? '', { value: bytes('{n'), isIdle: false });
  expect(still.replace(path, first ?? '', { value: bytes('{late'), isIdle: false })).toBeUndefined();
  expect(files.remove(path, version as string)).toBe(true);
  expect(still.replace(path, first ?? '', { value: bytes('{late'), isIdle: false })).toBeUndefined();
  expect(still.remove(path, first as string)).toBe(false);
  files.create(path, { value: bytes('{2'), isIdle: false });
  expect(still.replace(path, first ?? '', { value: bytes('{late'), isIdle: false })).toBeUndefined();
  expect(text(still.read(path)?.value)).toBe('{2');
});

test('a list with the old and the new name of a pointer, and one with files of others, has the new one', () => {
  const [older, newer] = ['a.0.w.0-1', 'b.0.w.1-1'];
  expect(latest([newer as string, older as string, '.DS_Store'])?.name).toBe(newer);
  expect(latest(['.DS_Store'])).toBeUndefined();
});

test('a reader that stood still while a value was moved and its file deleted reads the pointer again', () => {
  const { files, folder, path } = records();
  const [other, reader] = [records(folder).files, records(folder).files];
  const heldUntilMs = files.folder.clock.nowMicros() / 1_000 + 60_000;
  files.create(path, { value: bytes('{1'), isIdle: false, heldUntilMs });
  const read = reader.values.read.bind(reader.values);
  vi.spyOn(reader.values, 'read').mockImplementationOnce((from) => {
    other.adopt(path, from);
    unlinkSync(join(files.folder.values, from.writer));
    return read(from);
  });
  expect(text(reader.read(path)?.value)).toBe('{1');
});

test('files that a browser of files leaves in the folder of a record do not keep the lock', () => {
  const { files, path } = records();
  const version = files.create(path, { value: bytes('{1'), isIdle: false });
  writeFileSync(join(path, '.DS_Store'), '');
  files.remove(path, version as string);
  expect(readdirSync(path)).toEqual(['.DS_Store']);
  expect(files.create(path, { value: bytes('{2'), isIdle: false })).toBeDefined();
});

describe('a value that something else has deleted', () => {
  test('fails the lock while its holds may last, and frees it then', async () => {
    const { backend, folder } = open();
    const other = open(folder).backend;
    await take(backend, request('a', 1_500));
    const values = join(bootFolder(folder), 'v');
    const { writer } = pointer(pointerOf(folder, 'a'));
    unlinkSync(join(values, writer));
    await expect(other.attempt(request('a'), false, call)).rejects.toMatchObject({ code: 'VALUE_MISSING' });
    await expect
      .poll(
        () =>
          take(other, request('a')).then(
            () => 'granted',
            () => 'failed',
          ),
        { timeout: 5_000 },
      )
      .toBe('granted');
  });

  test('comes back with the next write of its holder', async () => {
    const { backend, folder } = open();
    const other = open(folder).backend;
    const grant = await take(backend, request('a', 60_000));
    unlinkSync(join(bootFolder(folder), 'v', pointer(pointerOf(folder, 'a')).writer));
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await backend.renew([{ grant, ttlMs: 60_000 }], call)).toEqual([{ status: 'held' }]);
    expect(await other.attempt(request('a'), false, call)).toMatchObject({ status: 'contended' });
  });
});

describe('a sweep', () => {
  test('moves what is in use out of the file of a process that has ended, and deletes the file', async () => {
    const { files, path } = records();
    files.create(path, { value: bytes('{1'), isIdle: false, heldUntilMs: 5 });
    const before = pointer(killWriter(files, path));
    await new FolderSweeper(files).sweep();
    const { value, pointer: after } = files.read(path) ?? {};
    expect(text(value)).toBe('{1');
    expect(after).toMatchObject({
      number: before.number + 1,
      until: before.until,
      writer: files.values.ownName,
    });
    expect(readdirSync(files.folder.values)).toEqual([files.values.ownName]);
  });

  test('keeps the file while a folder of a record cannot be read', async () => {
    const { files, path } = records();
    files.create(path, { value: bytes('{1'), isIdle: false });
    killWriter(files, path);
    // The list of another record lacks its pointer, as one that was read during a rename.
    const odd = join(files.folder.keys, 'lock=2fodd');
    files.create(odd, { value: bytes('{2'), isIdle: false });
    const spied = vi.spyOn(files, 'pointer').mockImplementation((at) => {
      if (at === odd) return undefined;
      return RecordFiles.prototype.pointer.call(files, at);
    });
    await new FolderSweeper(files).sweep();
    expect(readdirSync(files.folder.values)).toContain(DEAD);
    spied.mockRestore();
    await new FolderSweeper(files).sweep();
    expect(readdirSync(files.folder.values)).not.toContain(DEAD);
    expect(text(files.read(odd)?.value)).toBe('{2');
  });

  test('leaves alone the file of a process that lives, also one that stands between its two steps', async () => {
    const { files, folder, path } = records();
    const other = records(folder).files;
    files.create(path, { value: bytes('{1'), isIdle: false });
    // It has appended a value and renamed no pointer yet.
    other.values.append(bytes('{late'));
    await new FolderSweeper(files).sweep();
    expect(new Set(readdirSync(files.folder.values))).toEqual(
      new Set([files.values.ownName, other.values.ownName]),
    );
  });

  test('follows a file of its own that is full by another one', async () => {
    const { files, path } = records();
    const first = files.create(path, { value: bytes('{1'), isIdle: false });
    const idle = join(files.folder.keys, 'lock=2fidle');
    files.create(idle, { value: bytes('{idle'), isIdle: true });
    const before = files.values.ownName as string;
    let version = first;
    for (let n = 0; n < 5; n += 1)
      version = files.replace(path, version ?? '', {
        value: new Uint8Array(1_000_000).fill(0x7b),
        isIdle: false,
      });
    files.create(join(files.folder.keys, 'lock=2fb'), { value: bytes('{b'), isIdle: false });
    expect(files.values.ownName).not.toBe(before);
    await new FolderSweeper(files).sweep();
    expect(readdirSync(files.folder.values)).toEqual([files.values.ownName]);
    expect(text(files.read(idle)?.value)).toBe('{idle');
    expect(files.read(path)?.value.length).toBe(1_000_000);
  });

  test('deletes heartbeats and wake files of processes that ended, and idle records after a day', async () => {
    const { files } = records();
    const client = join(files.folder.keys, 'client=2fme');
    files.create(client, { value: bytes('{1'), isIdle: true });
    killWriter(files, client);
    writeFileSync(join(files.folder.path, 'v-wake-me'), '');
    writeFileSync(join(files.folder.path, `t.${DEAD}`), '');
    const idle = join(files.folder.keys, 'lock=2fidle');
    const held = join(files.folder.keys, 'lock=2fheld');
    files.create(idle, { value: bytes('{1'), isIdle: true });
    files.create(held, { value: bytes('{1'), isIdle: false });
    const { nowMicros } = files.folder.clock;
    const spied = vi
      .spyOn(files.folder.clock, 'nowMicros')
      .mockImplementation(() => nowMicros() + 86_400_000_001);
    onTestFinished(() => spied.mockRestore());
    await new FolderSweeper(files).sweep();
    expect(readdirSync(files.folder.keys)).toEqual(['lock=2fheld']);
    await new FolderSweeper(files).sweep();
    expect(readdirSync(files.folder.path).filter((name) => /^[tv][.-]/.test(name))).toEqual([]);
  });
});

test('a token rises also where the record was deleted as idle and the wall clock was set back by days', async () => {
  const { backend, folder } = open();
  const grant = await take(backend, request('a'));
  await backend.release(grant, call);
  await backend.close();
  expect(pointer(pointerOf(folder, 'a')).isIdle).toBe(true);
  rmSync(recordFolder(folder, 'a'), { recursive: true });
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 10 * 86_400_000);
  onTestFinished(() => void vi.restoreAllMocks());
  const next = await take(open(folder).backend, request('a'));
  expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
});

describe('the mark of a process', () => {
  test('that lives, that has ended, and of another one that has its pid', () => {
    const [pid = '', start = '', space = ''] = processMark().split('-');
    expect(hasEnded(processMark())).toBe(false);
    expect(hasEnded(DEAD)).toBe(true);
    if (process.platform === 'linux') expect(hasEnded(`${pid}-${start}1-${space}`)).toBe(true);
    // The pid means nothing in another container.
    expect(hasEnded(`${DEAD.split('-')[0]}-${start}-other`)).toBe(false);
  });

  test('a waiter whose process has ended is passed over at once', async () => {
    const { backend, folder } = open();
    const grant = await take(backend, request('a', 60_000));
    const dead = open(folder).backend;
    const waiting = request('a', 60_000);
    expect((await dead.attempt(waiting, true, call)).status).toBe('contended');
    const clients = readdirSync(join(bootFolder(folder), 'k')).filter((name) => name.startsWith('client'));
    expect(clients).toHaveLength(1);
    // As if its process had been killed.
    const path = join(bootFolder(folder), 'k', clients[0] as string);
    const [name = ''] = readdirSync(path);
    const { writer } = pointer(name);
    const next = open(folder).backend;
    const wanted = acquire(next, request('a'));
    await expect
      .poll(async () => (await backend.inspect('a', call)).waiters.length, { timeout: 5_000 })
      .toBe(2);
    const values = join(bootFolder(folder), 'v');
    writeFileSync(join(values, DEAD), (await import('node:fs')).readFileSync(join(values, writer)));
    renameSync(join(path, readdirSync(path)[0] as string), join(path, name.replace(writer, DEAD)));
    const freedAt = performance.now();
    await backend.release(grant, call);
    await wanted;
    expect(performance.now() - freedAt).toBeLessThan(1_500);
  });
});
