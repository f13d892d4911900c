import type { LockMode } from '../backend/types.ts';
import { SafetyViolation } from './safety-violation.ts';

/** One stay in the critical section. Times are of the machine's monotonic clock, so processes can be compared. */
export interface Stay {
  readonly who: string;
  readonly enteredAt: number;
  readonly leftAt: number;
  /** As text: bigints do not survive every channel between processes. */
  readonly token?: string | undefined;
  /** @defaultValue exclusive */
  readonly mode?: LockMode | undefined;
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
      throw new SafetyViolation(
        `${next.who} entered before ${stay.who} had left.\n${print(stays, index, seed)}`,
      );
    }
    if (stay.token !== undefined && next.token !== undefined && BigInt(next.token) <= BigInt(stay.token)) {
      throw new SafetyViolation(
        `The token did not rise from ${stay.who} to ${next.who}.\n${print(stays, index, seed)}`,
      );
    }
  }
}

/** Every token is higher than the one before it (docs/spec.md §6.1). */
export function assertRising(tokens: readonly (bigint | string | undefined)[]): void {
  const numbers = tokens.map((token) => {
    if (token === undefined) throw new Error('There is no token.');
    return BigInt(token);
  });
  for (const [index, token] of numbers.entries()) {
    const before = numbers[index - 1];
    if (before !== undefined && token <= before)
      throw new SafetyViolation(`The token did not rise: ${numbers.join(', ')}.`);
  }
}

/** Tokens that were given out together differ, and are above the one before (docs/spec.md §15.8). */
export function assertAbove(before: bigint | undefined, tokens: readonly (bigint | undefined)[]): void {
  const sorted = tokens.toSorted((a = 0n, b = 0n) => (a < b ? -1 : 1));
  assertRising(before === undefined ? sorted : [before, ...sorted]);
}

/** Judges that those who were inside together were allowed to be (docs/spec.md §15.1, §15.5). */
export function assertCompatible(history: readonly Stay[], seed: number): void {
  const stays = [...history].sort((a, b) => a.enteredAt - b.enteredAt);
  let inside: Stay[] = [];
  for (const [index, stay] of stays.entries()) {
    inside = inside.filter((other) => other.leftAt > stay.enteredAt);
    inside.push(stay);
    if (fitTogether(inside)) continue;
    const who = inside.map((other) => `${other.who} (${other.mode?.kind ?? 'exclusive'})`).join(', ');
    throw new SafetyViolation(`These were inside together: ${who}.\n${print(stays, index, seed)}`);
  }
}

function fitTogether(inside: readonly Stay[]): boolean {
  if (inside.length <= 1) return true;
  if (inside.every(({ mode }) => mode?.kind === 'shared')) return true;
  let weights = 0;
  for (const { mode } of inside) {
    if (mode?.kind !== 'permit') return false;
    weights += mode.weight;
  }
  return inside.every(({ mode }) => mode?.kind === 'permit' && weights <= mode.limit);
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
