import type { LockCode } from '../process/lock-code.ts';
import { Simulation } from '../simulation.ts';
import { drawPlan } from '../workload/draw-plan.ts';
import type { BackendKind } from '../workload/plan.ts';

/** A violation of the sources as they are. */
export interface UnprovokedViolation {
  readonly backend: BackendKind;
  readonly seed: number;
  readonly clause: string;
  readonly message: string;
}

/** How a mutant fared. */
export interface Judgement {
  /** How many schedules it took to find it; `undefined`: it was not found. */
  readonly foundAfter: number | undefined;
  /** Of docs/spec.md, which it broke first. */
  readonly clause: string | undefined;
  /** What the sources break without the mutant, in schedules that fail with it: they show nothing of the mutant. */
  readonly unprovoked: readonly UnprovokedViolation[];
}

/** Runs schedules with a mutant until one breaks a promise that it keeps without the mutant. */
export async function judgeMutant(
  { mutated, sound }: { readonly mutated: LockCode; readonly sound: LockCode },
  backend: BackendKind,
  firstSeed: number,
  schedules: number,
): Promise<Judgement> {
  const unprovoked: UnprovokedViolation[] = [];
  for (let done = 0; done < schedules; done += 1) {
    const seed = firstSeed + done;
    const found = await firstViolation(mutated, backend, seed);
    if (found === undefined) continue;
    const unchanged = await firstViolation(sound, backend, seed);
    if (unchanged === undefined) return { foundAfter: done + 1, clause: found.clause, unprovoked };
    unprovoked.push({ backend, seed, ...unchanged });
  }
  return { foundAfter: undefined, clause: undefined, unprovoked };
}

/** What a schedule breaks first. One that breaks off, by an error that the simulation does not know, has no result: that is told too. */
async function firstViolation(
  code: LockCode,
  backend: BackendKind,
  seed: number,
): Promise<Pick<UnprovokedViolation, 'clause' | 'message'> | undefined> {
  try {
    const [first] = (await new Simulation(code, drawPlan(backend, seed)).run()).violations;
    return first && { clause: first.clause, message: first.message };
  } catch (error) {
    return { clause: 'the run broke off', message: error instanceof Error ? error.message : String(error) };
  }
}
