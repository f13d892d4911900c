import type { WebLockMode, WebLocks } from '../src/index.ts';
import { randomFrom } from './random-from.ts';

/** A request of a program. */
export interface Step {
  readonly id: string;
  readonly name: string;
  readonly options: { readonly mode: WebLockMode; readonly ifAvailable?: true; readonly steal?: true };
  /** The callback holds until the program releases it, at the end of this turn. */
  readonly until: number;
}

/** What is requested in each turn. */
export type Program = readonly (readonly Step[])[];

export function randomProgram(seed: number, turns: number): Program {
  const random = randomFrom(seed);
  let made = 0;
  const step = (turn: number): Step => {
    const how = random(8);
    const mode = how !== 0 && random(2) === 0 ? 'shared' : 'exclusive';
    made += 1;
    return {
      id: `${made}`,
      name: ['a', 'b', 'c'][random(3)] as string,
      options: { mode, ...(how === 0 && { steal: true }), ...(how >= 6 && { ifAvailable: true }) },
      until: turn + random(3),
    };
  };
  return Array.from({ length: turns }, (_, turn) => Array.from({ length: 1 + random(5) }, () => step(turn)));
}

/** Runs a program; gives the calls of callbacks by name, in their order, and how each request ended. */
export async function run(
  locks: Pick<WebLocks, 'request' | 'query'>,
  program: Program,
  settled: () => Promise<unknown>,
): Promise<{ calls: Record<string, string[]>; outcomes: Record<string, unknown> }> {
  const calls: Record<string, string[]> = {};
  const outcomes: Record<string, unknown> = {};
  const releases = new Map<string, { until: number; release: () => void }>();
  const ends: Promise<void>[] = [];
  let turn = 0;
  const request = (step: Step): void => {
    const { id, name, options, until } = step;
    let release!: () => void;
    const work = new Promise<void>((resolve) => (release = resolve));
    releases.set(id, { until, release });
    const requested = locks.request(name, options, (lock) => {
      (calls[name] ??= []).push(lock === null ? `${id} null` : `${id} ${lock.mode}`);
      return lock === null || until < turn ? id : work.then(() => id);
    });
    ends.push(
      requested.then(
        (value) => void (outcomes[id] = value),
        (error: Error) => void (outcomes[id] = error.name),
      ),
    );
  };
  for (; turn < program.length + 3; turn += 1) {
    for (const step of program[turn] ?? []) request(step);
    await settled();
    for (const [id, { until, release }] of releases) {
      if (until > turn) continue;
      releases.delete(id);
      release();
    }
    await settled();
  }
  // Whatever is called from here on returns at once.
  turn = Number.POSITIVE_INFINITY;
  for (const { release } of releases.values()) release();
  await Promise.all(ends);
  return { calls, outcomes };
}
