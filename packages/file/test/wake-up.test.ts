import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { WakeFile } from '@locks/core/machine';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileStore } from '../src/file-store.ts';
import { checkOptions } from '../src/options.ts';
import { bootFolder, call, open, request, take, temporaryFolder, until } from './fixture.ts';

const value = Buffer.from('{}');

function store(folder: string): FileStore {
  const made = new FileStore(checkOptions(folder, undefined));
  onTestFinished(() => made.close());
  return made;
}

/** A store whose process waits, and has woken itself. */
async function waiting(folder: string, client: string) {
  const made = store(folder);
  // A heartbeat comes first, without which the next sweep removes the wake file.
  const beat = { key: `client/${client}`, value, ifVersion: undefined, isIdle: true };
  const { version } = (await made.write(beat)) as { readonly version: string };
  const changed = vi.fn();
  made.watch?.('lock/a', changed, client);
  await until(() => made.tellsWhom);
  return { made, changed, version };
}

const wakeFile = (folder: string, client: string) => join(bootFolder(folder), `v-wake-${client}`);

test('a write wakes the processes that it calls, and no others', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const [first, second] = [await waiting(folder, 'first'), await waiting(folder, 'second')];
  await new Promise((resolve) => setTimeout(resolve, 100));
  first.changed.mockClear();
  second.changed.mockClear();
  const writer = store(folder);
  await writer.write({ key: 'lock/a', value, ifVersion: undefined, isIdle: false, wakes: ['second'] });
  await until(() => second.changed.mock.calls.length > 0);
  expect(second.changed).toHaveBeenCalledWith({ wakes: ['second'] });
  expect(first.changed).not.toHaveBeenCalled();
});

test('who can be woken polls seldom, and says so only once that has worked', async () => {
  const folder = join(temporaryFolder(), 'locks');
  const { made, version } = await waiting(folder, 'me');
  expect(made.pace.maxPollMs).toBe(500);
  // A cleaner deletes the file: the process polls until its next heartbeat makes another one.
  rmSync(wakeFile(folder, 'me'));
  await until(() => !made.tellsWhom);
  expect(made.pace.maxPollMs).toBe(25);
  await made.write({ key: 'client/me', value, ifVersion: version, isIdle: true, wakes: ['me'] });
  await until(() => made.tellsWhom);
  await made.close();
  expect(existsSync(wakeFile(folder, 'me'))).toBe(false);
});

test('where files cannot be watched, and with `watch: false`, the poller works alone', async () => {
  const prepare = vi.spyOn(WakeFile.prototype, 'prepare').mockImplementation(() => undefined);
  onTestFinished(() => prepare.mockRestore());
  for (const watch of [true, false]) {
    const { backend, folder } = open();
    const other = open(folder, { watch }).backend;
    const grant = await take(backend, request('a'));
    const wanted = request('a');
    expect((await other.attempt(wanted, true, call)).status).toBe('contended');
    const turn = other.awaitTurn(wanted, call);
    await backend.release(grant, call);
    expect(await turn).toMatchObject({ request: { acquisitionId: wanted.acquisitionId } });
    expect(readdirSync(bootFolder(folder)).filter((name) => name.startsWith('v-wake-'))).toEqual([]);
  }
  expect(prepare).toHaveBeenCalled();
});
