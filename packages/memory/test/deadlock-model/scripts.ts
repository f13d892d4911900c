import { type Fault, PERIOD, type Script, type Steps } from './run-script.ts';
import type { How } from './circle-judge.ts';

/** How one member holds a lock, and how the one before it wants that. */
type Link = readonly [hold: How, want: How];

const LINKS: readonly Link[] = [
  ['write', 'write'],
  ['write', 'read'],
  ['read', 'write'],
  ['read', 'read'],
  ['both', 'one'],
  ['one', 'both'],
  ['one', 'one'],
];

const FAULTS: readonly (Fault['kind'] | undefined)[] = [undefined, 'killed', 'stalled', 'left', 'edges lost'];

/**
 * Every ring of a number of members and as many locks, in every mode: most are circles, and some have a way out. Each ring of up to
 * three meets every fault; there are so many of four that each of them meets one.
 */
export function* rings(count: number): Generator<Script> {
  const random = randomFrom(count);
  let rings = 0;
  for (const links of products(LINKS, count)) {
    // A ring that is turned is the same ring.
    if (turns(links).some((turned) => textOf(turned) < textOf(links))) continue;
    rings += 1;
    const faults = count < 4 ? FAULTS : [FAULTS[rings % FAULTS.length]];
    for (const kind of faults) {
      const members = links.map(([hold], index): Steps => {
        const next = (index + 1) % count;
        const want = (links[next] as Link)[1];
        return [
          { lock: `lock ${index}`, how: hold, afterMs: 0 },
          // In the same moment as another one, or some periods after it.
          { lock: `lock ${next}`, how: want, afterMs: 1 + (Math.floor(random() * 12) * PERIOD) / 4 },
        ];
      });
      const fault = kind && faultOf(kind, count, random);
      yield { name: `${textOf(links)}, ${kind ?? 'no fault'}`, members, fault };
    }
  }
}

/** Two to four members that take up to three of four locks in any order, in any mode, at any time. */
export function scriptOf(seed: number): Script {
  const random = randomFrom(seed);
  const below = (end: number): number => Math.floor(random() * end);
  const isPermits = Array.from({ length: 4 }, () => random() < 0.3);
  const hows = (lock: number): readonly How[] =>
    isPermits[lock] === true ? ['one', 'both'] : ['write', 'read'];
  const members = Array.from({ length: 2 + below(3) }, (): Steps => {
    const chosen = [0, 1, 2, 3].map((lock) => [random(), lock] as const).toSorted(([a], [b]) => a - b);
    return chosen.slice(0, 1 + below(3)).map(([, lock]) => ({
      lock: `lock ${lock}`,
      how: hows(lock)[below(2)] as How,
      afterMs: 1 + below(PERIOD),
    }));
  });
  const kind = FAULTS[below(FAULTS.length)];
  return { name: `seed ${seed}`, members, fault: kind && faultOf(kind, members.length, random) };
}

function faultOf(kind: Fault['kind'], members: number, random: () => number): Fault {
  return {
    kind,
    member: Math.floor(random() * members),
    atMs: Math.floor(random() * 4 * PERIOD),
    forMs: Math.floor(random() * 5 * PERIOD),
  };
}

function* products<T>(items: readonly T[], count: number): Generator<readonly T[]> {
  if (count === 0) return yield [];
  for (const rest of products(items, count - 1)) for (const item of items) yield [...rest, item];
}

function turns<T>(items: readonly T[]): T[][] {
  return items.map((_, index) => [...items.slice(index), ...items.slice(0, index)]);
}

function textOf(links: readonly Link[]): string {
  return links.map(([hold, want]) => `${hold}-${want}`).join(' ');
}

/** Numbers from 0 to 1 that a seed decides: Mulberry32 (Tommy Ettinger, 2017). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
