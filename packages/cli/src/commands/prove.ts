import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { nearest } from '@locks/core/backend';
import type { FaultName, Proof, StoreModule, Strike } from '@locks/prove';
import { EXIT } from '../exit-codes.ts';
import { type NamedStore, openStore, REACH_MS } from '../open-store.ts';
import { withPackages } from '../store-packages.ts';
import { UsageError } from '../usage-error.ts';
import type { Write } from './look.ts';
import type { ProvePlan } from './prove-plan.ts';

const MINUTE_MS = 60_000;

interface ProveEnvironment {
  readonly write: Write;
  readonly say: (text: string) => void;
  /** Aborts at Ctrl-C: the report tells of what was seen until then. */
  readonly signal: AbortSignal;
  /** Whether each fault is told of. */
  readonly isTerminal: boolean;
}

/**
 * Uses the locks of a store in processes that are hurt, and reports what they saw. Gives the exit code.
 * @throws UsageError; LockError `LOCK_BACKEND` where the store does not answer
 */
export async function prove(
  plan: ProvePlan,
  named: NamedStore,
  { write, say, signal, isTerminal }: ProveEnvironment,
): Promise<number> {
  const {
    prove: proveLocks,
    proofText,
    proofPage,
    FAULTS,
  } = await withPackages('prove', ['@locks/prove'], () => import('@locks/prove'));
  const faults = readFaults(plan.faults, FAULTS);
  const store =
    plan.module === undefined ? await storeOfUrl(named) : { module: plan.module, argument: named.url };
  const runMs = plan.minutes * MINUTE_MS;
  const beganAt = performance.now();
  const tell = ({ fault, worker, detail }: Strike): void => {
    const seconds = Math.round((performance.now() - beganAt) / 1_000);
    say(`${seconds} s: ${fault}, ${worker}: ${detail}`);
  };
  const { seed } = plan;
  const proof = await proveLocks({
    ...{ store, runMs, seed, faults, signal },
    suite: plan.module !== undefined,
    ...(isTerminal && { onStrike: tell }),
  });
  const command = commandOf(plan, proof);
  write(`${proofText(proof)}\n${command}\n`);
  try {
    if (plan.json !== undefined)
      await writeFile(plan.json, `${JSON.stringify({ ...proof, command }, null, 1)}\n`);
    if (plan.html !== undefined) await writeFile(plan.html, proofPage(proof, command));
  } catch (error) {
    say(`the report cannot be written: ${(error as Error).message}`);
    return EXIT.io;
  }
  return proof.kept ? EXIT.ok : EXIT.broken;
}

/** @throws UsageError */
function readFaults(given: readonly string[] | undefined, known: readonly FaultName[]): readonly FaultName[] {
  if (given === undefined) return known;
  for (const name of given) {
    if ((known as readonly string[]).includes(name)) continue;
    const meant = nearest(name, known);
    const hint = meant === undefined ? '' : ` did you mean ${meant}?`;
    throw new UsageError(`--faults: unknown fault "${name}":${hint} ${known.join(', ')} exist`);
  }
  return [...new Set(given)] as FaultName[];
}

/** The module that opens the store in each worker; the store has answered. */
async function storeOfUrl(named: NamedStore): Promise<StoreModule> {
  await using store = await openStore(named.url, named.prefix);
  await store.reach(REACH_MS);
  return { module: moduleFile().href, argument: named };
}

/** The program beside this module: of the package, or of its sources. */
function moduleFile(): URL {
  const built = new URL('./prove-store/main.js', import.meta.url);
  return existsSync(built) ? built : new URL('../prove-store/main.ts', import.meta.url);
}

/** The command that draws the same faults. The URL, which may have a password, stays in LOCKS_URL. */
function commandOf({ minutes, faults, module }: ProvePlan, { seed }: Proof): string {
  const options = [
    ...(module === undefined ? [] : ['--backend FILE']),
    `--minutes ${minutes}`,
    `--seed ${seed}`,
    ...(faults === undefined ? [] : [`--faults ${faults.join(',')}`]),
  ];
  return `LOCKS_URL=… locks prove ${options.join(' ')}`;
}
