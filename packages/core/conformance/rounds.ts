import { SafetyViolation } from './safety-violation.ts';

/** So many rounds each contender makes on the slowest store: enough for one to be four turns ahead of another. */
export const LEAST_ROUNDS = 4;
const ROUNDS_MS = 5_000;

/** The numbers of the rounds in which one contender takes a lock: a slow store makes as many as the time allows. */
export function* roundsUpTo(most: number, startedAt = performance.now()): Generator<number, void> {
  for (let round = 0; round < most; round += 1) {
    if (round >= LEAST_ROUNDS && performance.now() - startedAt > ROUNDS_MS) return;
    yield round;
  }
}

/** On a busy machine the store, or a thread, may be too late: of so many rounds one must succeed. */
const TRIES = 3;

/** Runs a round until one succeeds. What must never happen fails at once. */
export async function succeedsOnce(round: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await round();
    } catch (error) {
      if (tries === TRIES || error instanceof SafetyViolation) throw error;
    }
  }
}
