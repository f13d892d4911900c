/** One hold of the contended lock, on the machine's clock. */
export interface Hold {
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
  /** Entered after the time limit of its block: it left at once and is not counted. */
  readonly late: boolean;
}

export interface History {
  /** From the exit of each holder to the entry of the next one. */
  readonly gaps: number[];
  /** Entries while somebody else was still inside. */
  readonly overlaps: number;
}

/** Reads the holds of one lock, of all processes, as one history. */
export function readHistory(holds: readonly Hold[]): History {
  const inOrder = [...holds].sort((one, other) => one.enteredAt - other.enteredAt);
  const gaps: number[] = [];
  let overlaps = 0;
  let lastExit: number | undefined;
  for (const { enteredAt, leftAt, late } of inOrder) {
    if (lastExit !== undefined) {
      if (enteredAt < lastExit) overlaps += 1;
      if (!late) gaps.push(enteredAt - lastExit);
    }
    lastExit = Math.max(lastExit ?? leftAt, leftAt);
  }
  return { gaps, overlaps };
}
