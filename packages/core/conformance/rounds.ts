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
