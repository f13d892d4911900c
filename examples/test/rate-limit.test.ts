import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type LockManager } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, it } from 'vitest';
import { type Mail, Mailer } from '../src/rate-limit.ts';

const machines = (count: number): LockManager[] => {
  const store = new MemoryStore();
  return Array.from({ length: count }, () => createLocks(memoryBackend(store)));
};

it('lets five work at once and no more, over all machines, and never idles with work to do', async () => {
  const managers = machines(3);
  let connections = 0;
  let most = 0;
  const send = async ({ to }: Mail): Promise<void> => {
    connections += to.length;
    most = Math.max(most, connections);
    await sleep(5);
    connections -= to.length;
  };
  const mailers = managers.map((locks) => new Mailer(locks, send));
  const mails: Mail[] = Array.from({ length: 40 }, (_, n) => ({
    to: n % 10 === 0 ? ['ada', 'bob', 'cid'] : ['ada'],
    text: 'hello',
  }));
  const sent = await Promise.all(mails.map((mail, n) => (mailers[n % 3] as Mailer).send(mail)));
  expect(sent).toEqual(Array(40).fill('sent'));
  expect(most).toBe(5);
  await Promise.all(managers.map((locks) => locks.close()));
});

it('says that it is busy when no connection came free in time', async () => {
  const [locks] = machines(1) as [LockManager];
  let finish = (): void => undefined;
  const sending = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const mailer = new Mailer(locks, () => sending);
  const mail: Mail = { to: ['ada', 'bob', 'cid', 'dee'], text: 'hello' };
  const first = mailer.send(mail);
  expect(await mailer.send(mail, 20)).toBe('busy');
  finish();
  expect(await first).toBe('sent');
  expect(await mailer.send({ to: ['ada'], text: 'again' }, 20)).toBe('sent');
  await locks.close();
});

it('refuses a machine that was given another number', async () => {
  const [ours, theirs] = machines(2) as [LockManager, LockManager];
  await using lease = await theirs.semaphore('mail-api', 6).acquire();
  const mailer = new Mailer(ours, async () => {});
  await expect(mailer.send({ to: ['ada'], text: 'hello' })).rejects.toMatchObject({ code: 'LOCK_CONFLICT' });
  expect(lease.validForMs).toBeGreaterThan(0);
});
