import { expect, test } from 'vitest';
import { type LockEvent, onLockEvent } from '../src/index.ts';
import { locksOn } from './fixture.ts';
import { scriptedBackend } from './scripted-backend.ts';

test('a listener gets the messages of its channel until it is stopped', async () => {
  const locks = locksOn(scriptedBackend());
  const heard: string[] = [];
  const stop = onLockEvent('locks:acquired', ({ resource }) => heard.push(resource));
  await locks.lock('a').acquire();
  stop();
  stop();
  await locks.lock('b').acquire();
  expect(heard).toEqual(['a']);
  await locks.close();
});

test('every event says the label and the mode of its acquisition', async () => {
  const locks = locksOn(scriptedBackend({ abandon: () => Promise.reject(new Error('away')) }), {
    label: 'me',
  });
  const heard: LockEvent[] = [];
  const names = [
    'locks:acquired',
    'locks:released',
    'locks:lost',
    'locks:gave-up',
    'locks:abandon-failed',
  ] as const;
  const stops = names.map((name) => onLockEvent(name, (event) => heard.push(event)));
  await (await locks.lock('a').acquire()).release();
  await locks.lock('a').acquire();
  await locks.close();
  for (const stop of stops) stop();
  expect(heard.length).toBeGreaterThan(3);
  for (const { label, mode } of heard)
    expect({ label, mode }).toEqual({ label: 'me', mode: { kind: 'exclusive' } });
});

test('locks:gave-up names the holders, and locks:contended can ask for them', async () => {
  const holder = { acquisitionId: 'other', mode: { kind: 'exclusive' as const }, label: 'other host' };
  const locks = locksOn(
    scriptedBackend({
      attempt: () => Promise.resolve({ status: 'contended' }),
      inspect: (resource) => Promise.resolve({ resource, holders: [holder], waiters: [] }),
    }),
  );
  const asked: Promise<unknown>[] = [];
  const published: unknown[] = [];
  const stops = [
    onLockEvent('locks:contended', ({ lookUpHolders }) => asked.push(lookUpHolders())),
    onLockEvent('locks:gave-up', ({ holders }) => published.push(holders)),
  ];
  await expect(locks.lock('a').acquire({ waitMs: 200 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  for (const stop of stops) stop();
  expect(await Promise.all(asked)).toEqual([[holder]]);
  expect(published).toEqual([[holder]]);
});
