/**
 * Code written for a browser, where tabs share a sign-in: one refreshes the token, the others wait and take the new one.
 * It knows nothing but the Web Locks API. Given `webLocks(backend)`, it does the same for machines.
 */
import type { LockManager } from 'node:worker_threads';

export interface Token {
  readonly value: string;
  readonly expiresAt: number;
}

/** Where all tabs, or all machines, find the token. */
export interface TokenStore {
  read(): Promise<Token | undefined>;
  write(token: Token): Promise<void>;
}

export async function freshToken(
  locks: LockManager,
  store: TokenStore,
  refresh: () => Promise<Token>,
  now = Date.now(),
): Promise<string> {
  const known = await store.read();
  if (known !== undefined && known.expiresAt > now) return known.value;
  return locks.request('token', async () => {
    // Another one may have refreshed the token while this one waited.
    const current = await store.read();
    if (current !== undefined && current.expiresAt > now) return current.value;
    const token = await refresh();
    await store.write(token);
    return token.value;
  });
}
