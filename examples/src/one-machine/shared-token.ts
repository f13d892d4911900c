/**
 * All commands of one user find the token of the service expired at once: one of them asks for a new one, and the others take
 * what it got.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import { fileBackend, fileResults } from '@locks/file';
import { coalesce } from '@locks/once';

export async function sharedToken(
  folder: string,
  refresh: (signal: AbortSignal) => Promise<string>,
): Promise<string> {
  // The token stands in a file. Others may look into the folder that all programs share, but not into this one, even if it was made before.
  const tokens = join(folder, 'tokens');
  mkdirSync(tokens, { recursive: true, mode: 0o700 });
  chmodSync(tokens, 0o700);
  const locks = createLocks(fileBackend(tokens));
  try {
    return await coalesce(locks, 'token', ({ signal }) => refresh(signal), {
      store: fileResults(tokens),
      shareForMs: 300_000, // shorter than the token lasts
      ttlMs: 5_000, // so long a killed command keeps the others waiting
      waitMs: 20_000,
    });
  } finally {
    await locks.close();
  }
}
