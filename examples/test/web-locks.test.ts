import { memoryBackend, MemoryStore } from '@locks/memory';
import { webLocks } from '@locks/web-locks';
import { expect, it } from 'vitest';
import { freshToken, type Token } from '../src/web-locks.ts';

it('refreshes a token once for all machines', async () => {
  const store = new MemoryStore();
  const machines = Array.from({ length: 5 }, () => webLocks(memoryBackend(store)));
  let token: Token | undefined = { value: 'old', expiresAt: 0 };
  let refreshed = 0;
  const refresh = async (): Promise<Token> => {
    refreshed += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { value: `token ${refreshed}`, expiresAt: Date.now() + 60_000 };
  };
  const shared = { read: async () => token, write: async (fresh: Token) => void (token = fresh) };
  const values = await Promise.all(machines.map((locks) => freshToken(locks, shared, refresh)));
  expect(values).toEqual(Array.from({ length: 5 }, () => 'token 1'));
  expect(refreshed).toBe(1);
  await Promise.all(machines.map((locks) => locks.close()));
});
