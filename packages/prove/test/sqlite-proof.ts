import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prove, type Proof, type ProveOptions, type PromiseProof } from '../src/index.ts';
import type { Planted } from './fixtures/planted.ts';

/** A run on locks in a file of its own, with a planted error. */
export function proveSqlite(planted: Planted, options: Partial<ProveOptions>): Promise<Proof> {
  const file = join(mkdtempSync(join(tmpdir(), 'prove-')), 'locks.db');
  const module = new URL('fixtures/planted.ts', import.meta.url).href;
  return prove({
    store: { module, argument: { file, planted } },
    seed: 7,
    ttlMs: 700,
    workers: 3,
    ...options,
  });
}

/**
 * As `proveSqlite`, and again with twice the time while `isEnough` is false, until one took more than ten seconds: whom a fault meets is drawn, and what
 * a busy machine reaches in a given time is not known before.
 */
export async function proveSqliteUntil(
  planted: Planted,
  options: Partial<ProveOptions> & { readonly runMs: number },
  isEnough: (proof: Proof) => boolean,
): Promise<Proof> {
  const proof = await proveSqlite(planted, options);
  return isEnough(proof) || options.runMs > 10_000
    ? proof
    : proveSqliteUntil(planted, { ...options, runMs: 2 * options.runMs }, isEnough);
}

export function promiseOf({ promises }: Proof, id: string): PromiseProof {
  const found = promises.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no promise ${id}.`);
  return found;
}
