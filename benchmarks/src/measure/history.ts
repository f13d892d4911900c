/** One hold of the contended lock, on the machine's clock. */
export interface Hold {
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
  /** The hold was entered after the time limit of its block: it was left at once and is not counted. */
  readonly late: boolean;
  /** How much of the capacity the hold took. */
  readonly weight: number;
}

export interface History {
  /** From the exit of each holder to the entry of the next one. */
  readonly gaps: number[];
  /** Entries beyond the capacity: other holders were still inside. */
  readonly overlaps: number;
}

/** Reads the holds of one lock, of all processes, as one history; of a semaphore, there are `capacity` permits. */
export function readHistory(holds: readonly Hold[], capacity = 1): History {
  const inOrder = [...holds].sort((one, other) => one.enteredAt - other.enteredAt);
  const gaps: number[] = [];
  let overlaps = 0;
  let inside: Hold[] = [];
  let lastExit: number | undefined;
  for (const hold of inOrder) {
    const { enteredAt, leftAt, late, weight } = hold;
    inside = [...inside.filter((other) => other.leftAt > enteredAt), hold];
    if (inside.reduce((sum, other) => sum + other.weight, 0) > Math.max(capacity, weight)) overlaps += 1;
    if (lastExit !== undefined && !late) gaps.push(enteredAt - lastExit);
    lastExit = Math.max(lastExit ?? leftAt, leftAt);
  }
  return { gaps, overlaps };
}
