import type { LockMode } from '../src/backend/types.ts';
import type { Lease } from '../src/lease.ts';
import { SafetyViolation } from './safety-violation.ts';

/** One passage through a critical section. Its times, on the machine's monotonic clock, compare between processes. */
export interface CriticalSection {
  readonly who: string;
  readonly enteredAt: number;
  readonly leftAt: number;
  /** The fencing token as text: bigints do not survive every channel between processes. */
  readonly token?: string | undefined;
  /** @defaultValue exclusive */
  readonly mode?: LockMode | undefined;
}

/** Milliseconds on the monotonic clock that all processes of a machine share. */
export function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Does `work` in a critical section of `lease`, records the section, and releases the lease. */
export async function enter(
  lease: Lease,
  who: string,
  work: () => Promise<unknown>,
): Promise<CriticalSection> {
  const enteredAt = machineNow();
  await work();
  const leftAt = machineNow();
  const section = { who, enteredAt, leftAt, token: lease.fencingToken?.toString(), mode: lease.mode };
  await lease.release();
  return section;
}

/** Asserts that critical sections exclude each other, and that their tokens, if any, rise (docs/spec.md §11.1, §6.1). */
export function assertExclusive(history: readonly CriticalSection[], seed: number): void {
  const sections = [...history].sort((a, b) => a.enteredAt - b.enteredAt);
  for (const [index, section] of sections.entries()) {
    const next = sections[index + 1];
    if (next === undefined) return;
    if (next.enteredAt < section.leftAt) {
      throw new SafetyViolation(
        `${next.who} entered before ${section.who} had left.\n${print(sections, index, seed)}`,
      );
    }
    if (
      section.token !== undefined &&
      next.token !== undefined &&
      BigInt(next.token) <= BigInt(section.token)
    ) {
      throw new SafetyViolation(
        `The token did not rise from ${section.who} to ${next.who}.\n${print(sections, index, seed)}`,
      );
    }
  }
}

/** Asserts that every token is higher than the one before it (docs/spec.md §6.1). */
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

/** Asserts that tokens that were granted together differ, and are above the token before them (docs/spec.md §15.8). */
export function assertAbove(before: bigint | undefined, tokens: readonly (bigint | undefined)[]): void {
  const sorted = tokens.toSorted((a = 0n, b = 0n) => (a < b ? -1 : 1));
  assertRising(before === undefined ? sorted : [before, ...sorted]);
}

/** Asserts that holders that were inside together may hold together (docs/spec.md §15.1, §15.5). */
export function assertCompatible(history: readonly CriticalSection[], seed: number): void {
  const sections = [...history].sort((a, b) => a.enteredAt - b.enteredAt);
  let inside: CriticalSection[] = [];
  for (const [index, section] of sections.entries()) {
    inside = inside.filter((other) => other.leftAt > section.enteredAt);
    inside.push(section);
    if (fitTogether(inside)) continue;
    const who = inside.map((other) => `${other.who} (${other.mode?.kind ?? 'exclusive'})`).join(', ');
    throw new SafetyViolation(`These were inside together: ${who}.\n${print(sections, index, seed)}`);
  }
}

function fitTogether(inside: readonly CriticalSection[]): boolean {
  if (inside.length <= 1) return true;
  if (inside.every(({ mode }) => mode?.kind === 'shared')) return true;
  let weights = 0;
  for (const { mode } of inside) {
    if (mode?.kind !== 'permit') return false;
    weights += mode.weight;
  }
  return inside.every(({ mode }) => mode?.kind === 'permit' && weights <= mode.limit);
}

/** The critical sections around a violation, as a table that fits a failure message. */
function print(sections: readonly CriticalSection[], at: number, seed: number): string {
  const start = sections[0]?.enteredAt ?? 0;
  const rows = sections.slice(Math.max(0, at - 3), at + 5).map(({ who, enteredAt, leftAt, token }) => {
    const times = `${(enteredAt - start).toFixed(3)} … ${(leftAt - start).toFixed(3)} ms`;
    return `  ${who.padEnd(16)} ${times}${token === undefined ? '' : `  token ${token}`}`;
  });
  return [`seed ${seed}, ${sections.length} sections, around the fault:`, ...rows].join('\n');
}
