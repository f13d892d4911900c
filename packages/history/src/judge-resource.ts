import { HighestByWeight, higher } from './highest-by-weight.ts';
import type { HistoryOperation } from './history-operation.ts';
import type { CertainHold, HistoryViolation, HistoryViolationKind, Narrator } from './history-verdict.ts';

const MOST_OPERATIONS = 12;
const MOST_NAMED = 3;

export interface JudgedResource {
  readonly violations: readonly HistoryViolation[];
  readonly longestIdleMs: number;
}

/** Judges the holds of one resource together, in one pass over their beginnings and ends. */
export function judgeResource(
  resource: string,
  given: readonly CertainHold[],
  narrator: Narrator,
): JudgedResource {
  // A grant that ended before its holder saw it is no hold.
  const holds = given.filter(({ from, until }) => from <= until);
  const begun = holds.sort((a, b) => a.from - b.from || a.until - b.until);
  const ended = [...begun].sort((a, b) => a.until - b.until);
  const sweep = new ResourceSweep(resource, begun, narrator);
  let next = 0;
  for (const hold of begun) {
    for (; (ended[next]?.until ?? Number.POSITIVE_INFINITY) <= hold.from; next += 1) {
      const over = ended[next] as CertainHold;
      // The end of a hold of zero length may come before its beginning here.
      if (over !== hold) sweep.end(over);
    }
    sweep.begin(hold);
  }
  return { violations: sweep.violations, longestIdleMs: longestIdle(begun) };
}

class ResourceSweep {
  readonly violations: HistoryViolation[] = [];
  readonly #resource: string;
  readonly #narrator: Narrator;
  readonly #exclusive = new Set<CertainHold>();
  readonly #shared = new Set<CertainHold>();
  readonly #permits = new Set<CertainHold>();
  #permitsHeld = 0;
  /** The holds with the highest tokens among those that are over. */
  #endedExclusive: CertainHold | undefined;
  #endedShared: CertainHold | undefined;
  readonly #endedPermits: HighestByWeight;

  constructor(resource: string, holds: readonly CertainHold[], narrator: Narrator) {
    this.#resource = resource;
    this.#narrator = narrator;
    const weights = new Set<number>();
    for (const { mode } of holds) if (mode.kind === 'permit') weights.add(mode.weight);
    this.#endedPermits = new HighestByWeight(weights);
  }

  begin(hold: CertainHold): void {
    this.#judgeTokens(hold);
    const { mode } = hold;
    switch (mode.kind) {
      case 'exclusive':
        this.#judgeExclusion(hold, [this.#exclusive, this.#shared, this.#permits]);
        break;
      case 'shared':
        this.#judgeExclusion(hold, [this.#exclusive, this.#permits]);
        break;
      case 'permit':
        this.#judgeExclusion(hold, [this.#exclusive, this.#shared]);
        this.#judgePermits(hold, mode.weight, mode.limit);
        break;
      default:
        mode satisfies never;
    }
    // A hold of zero length is over when the next one begins.
    if (hold.until <= hold.from) return this.#noteEnd(hold);
    this.#holdersLike(hold).add(hold);
    if (mode.kind === 'permit') this.#permitsHeld += mode.weight;
  }

  end(hold: CertainHold): void {
    if (!this.#holdersLike(hold).delete(hold)) return;
    if (hold.mode.kind === 'permit') this.#permitsHeld -= hold.mode.weight;
    this.#noteEnd(hold);
  }

  #noteEnd(hold: CertainHold): void {
    if (hold.mode.kind === 'exclusive') this.#endedExclusive = higher(this.#endedExclusive, hold);
    else if (hold.mode.kind === 'shared') this.#endedShared = higher(this.#endedShared, hold);
    else this.#endedPermits.add(hold, hold.mode.weight);
  }

  #holdersLike({ mode: { kind } }: CertainHold): Set<CertainHold> {
    return { exclusive: this.#exclusive, shared: this.#shared, permit: this.#permits }[kind];
  }

  #judgeExclusion(hold: CertainHold, excluded: readonly ReadonlySet<CertainHold>[]): void {
    if (excluded.every(({ size }) => size === 0)) return;
    const others = firstOf(excluded);
    this.#accuse(
      'exclusion',
      [...others, hold],
      `${this.#narrator.name(hold.entry)} held ${this.#narrator.span(hold)} while ${this.#list(others)} held`,
    );
  }

  #judgePermits(hold: CertainHold, weight: number, limit: number): void {
    for (const other of this.#permits) {
      if (other.mode.kind !== 'permit' || other.mode.limit === limit) continue;
      const what = `${this.#narrator.name(hold.entry)} was granted at ${this.#narrator.at(hold.from)} while ${this.#list([other])} held under another limit`;
      return this.#accuse('limit', [other, hold], what);
    }
    const held = this.#permitsHeld + weight;
    if (held <= limit) return;
    const others = firstOf([this.#permits]);
    this.#accuse(
      'capacity',
      [...others, hold],
      `${held} of ${limit} permits were held from ${this.#narrator.at(hold.from)}: ${this.#narrator.name(hold.entry)} while ${this.#list(others)} held`,
    );
  }

  #judgeTokens(hold: CertainHold): void {
    const { mode, token } = hold;
    if (token === undefined) return;
    let before = this.#endedExclusive;
    if (mode.kind !== 'shared') before = higher(before, this.#endedShared);
    const least = mode.kind === 'permit' ? mode.limit - mode.weight : 0;
    before = higher(before, this.#endedPermits.above(least));
    if (before?.token === undefined || before.token < token) return;
    this.#accuse(
      'token-order',
      [before, hold],
      `${this.#narrator.name(hold.entry)} was granted at ${this.#narrator.at(hold.from)}, and its token is not higher than that of ${this.#narrator.name(before.entry)}, which had held ${this.#narrator.span(before)}`,
    );
  }

  #list(holds: readonly CertainHold[]): string {
    const named = holds.slice(0, MOST_NAMED);
    const texts = named.map((hold) => `${this.#narrator.name(hold.entry)} ${this.#narrator.span(hold)}`);
    const more = this.#exclusive.size + this.#shared.size + this.#permits.size - named.length;
    return [...texts, ...(more > 0 && holds.length > MOST_NAMED ? [`${more} more`] : [])].join(', ');
  }

  #accuse(kind: HistoryViolationKind, holds: readonly CertainHold[], what: string): void {
    const operations = holds.flatMap(({ entry, release }): HistoryOperation[] =>
      release === undefined ? [entry] : [entry, release],
    );
    this.violations.push({
      kind,
      resource: this.#resource,
      sentence: `${what} (resource ${JSON.stringify(this.#resource)}).`,
      operations: operations.slice(0, MOST_OPERATIONS).sort((a, b) => a.invokedAt - b.invokedAt),
    });
  }
}

/** A few of the holders, for a message. */
function firstOf(sets: readonly ReadonlySet<CertainHold>[]): CertainHold[] {
  const found: CertainHold[] = [];
  for (const holds of sets) {
    for (const hold of holds) {
      if (found.length === MOST_OPERATIONS / 2 - 1) return found;
      found.push(hold);
    }
  }
  return found;
}

/** The longest time between the last end of a hold and the next beginning for which the next holder, or a later one, waited. */
function longestIdle(begun: readonly CertainHold[]): number {
  // `waitsSince` has, for each holder, the earliest call of this holder and all later ones.
  const waitsSince = new Float64Array(begun.length);
  let earliest = Number.POSITIVE_INFINITY;
  for (let index = begun.length - 1; index >= 0; index -= 1) {
    earliest = Math.min(earliest, (begun[index] as CertainHold).entry.invokedAt);
    waitsSince[index] = earliest;
  }
  let longest = 0;
  let lastEnd = Number.NEGATIVE_INFINITY;
  for (const [index, { from, until }] of begun.entries()) {
    longest = Math.max(longest, from - Math.max(lastEnd, waitsSince[index] as number));
    lastEnd = Math.max(lastEnd, until);
  }
  return longest;
}
