export interface ScoredMember {
  readonly member: string;
  readonly score: number;
}

/** The members of a sorted set, ordered by score, then by bytes. */
export class SortedSet {
  readonly #scores: Map<string, number>;
  #ordered: readonly ScoredMember[] | undefined;

  constructor(scores: Iterable<readonly [string, number]> = []) {
    this.#scores = new Map(scores);
  }

  get size(): number {
    return this.#scores.size;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  set(member: string, score: number): void {
    // Small sets keep whole scores as integers, which have no negative zero.
    this.#scores.set(member, score + 0);
    this.#ordered = undefined;
  }

  delete(member: string): boolean {
    this.#ordered = undefined;
    return this.#scores.delete(member);
  }

  ordered(): readonly ScoredMember[] {
    this.#ordered ??= [...this.#scores]
      .map(([member, score]) => ({ member, score }))
      .sort((a, b) => a.score - b.score || (a.member < b.member ? -1 : 1));
    return this.#ordered;
  }

  copy(): SortedSet {
    return new SortedSet(this.#scores);
  }
}
