import assert from 'node:assert/strict';

/** One stay in the critical section. Times are of the machine's monotonic clock, so processes can be compared. */
export interface Stay {
  readonly who: string;
  readonly enteredAt: number;
  readonly leftAt: number;
  /** As text: bigints do not survive every channel between processes. */
  readonly token?: string | undefined;
}

/** Milliseconds on the monotonic clock that all processes of a machine share. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Judges exclusion, and rising tokens where there are any, from what was recorded (docs/spec.md §11.1, §6.1). */
export function assertExclusive(history: readonly Stay[], seed: number): void {
  const stays = [...history].sort((a, b) => a.enteredAt - b.enteredAt);
  for (const [index, stay] of stays.entries()) {
    const next = stays[index + 1];
    if (next === undefined) return;
    if (next.enteredAt < stay.leftAt) {
      assert.fail(`${next.who} entered before ${stay.who} had left.\n${print(stays, index, seed)}`);
    }
    if (stay.token !== undefined && next.token !== undefined && BigInt(next.token) <= BigInt(stay.token)) {
      assert.fail(`The token did not rise from ${stay.who} to ${next.who}.\n${print(stays, index, seed)}`);
    }
  }
}

/** The stays around a fault, as a table that fits a failure message. */
function print(stays: readonly Stay[], at: number, seed: number): string {
  const start = stays[0]?.enteredAt ?? 0;
  const rows = stays.slice(Math.max(0, at - 3), at + 5).map(({ who, enteredAt, leftAt, token }) => {
    const times = `${(enteredAt - start).toFixed(3)} … ${(leftAt - start).toFixed(3)} ms`;
    return `  ${who.padEnd(16)} ${times}${token === undefined ? '' : `  token ${token}`}`;
  });
  return [`seed ${seed}, ${stays.length} stays, around the fault:`, ...rows].join('\n');
}
