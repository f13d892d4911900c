import { closeSync, openSync, unlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import old from 'proper-lockfile';
import { lock as ownLock } from '../src/proper-lockfile.ts';

/** What a test asks of a process: one call, or sections of a lock as fast as it can. */
export interface Order {
  readonly by: 'own' | 'old';
  readonly file: string;
  readonly stale?: number;
  /** How many milliseconds to work: without it the lock is taken once, and kept. */
  readonly workMs?: number;
}

export type Answer =
  | { readonly is: 'held' | 'compromised' | 'released' }
  | { readonly is: 'failed'; readonly code: string }
  | { readonly is: 'worked'; readonly sections: number; readonly overlaps: number };

let release: (() => Promise<void>) | undefined;

function tell(answer: Answer): void {
  process.send?.(answer);
}

async function hold({ by, file, stale = 2_000 }: Order): Promise<void> {
  const lock = by === 'own' ? ownLock : old.lock;
  release = await lock(file, { stale, update: 1_000, onCompromised: () => tell({ is: 'compromised' }) });
  tell({ is: 'held' });
}

/** Whoever finds the file `inside` of another one in its section has seen two holders. */
async function work({ by, file, workMs = 0 }: Order): Promise<void> {
  const lock = by === 'own' ? ownLock : old.lock;
  const end = performance.now() + workMs;
  let [sections, overlaps] = [0, 0];
  while (performance.now() < end) {
    const unlock = await lock(file, {
      stale: 10_000,
      retries: { retries: 2_000, factor: 1, minTimeout: 1, maxTimeout: 8, randomize: true },
    });
    try {
      closeSync(openSync(`${file}.inside`, 'wx'));
      await sleep(Math.random() * 2);
      unlinkSync(`${file}.inside`);
    } catch {
      overlaps += 1;
    }
    sections += 1;
    await unlock();
  }
  tell({ is: 'worked', sections, overlaps });
}

process.on('message', (order: Order | 'release' | 'exit') => {
  const done =
    order === 'exit'
      ? Promise.reject(new Error(String(process.exit())))
      : order === 'release'
        ? release?.().then(() => tell({ is: 'released' }))
        : order.workMs === undefined
          ? hold(order)
          : work(order);
  done?.catch((error: NodeJS.ErrnoException) => tell({ is: 'failed', code: error.code ?? String(error) }));
});
