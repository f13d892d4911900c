/** What code asks of a lock: to write or read what others may read, or one or both of two permits. */
export type How = 'write' | 'read' | 'one' | 'both';

export interface Want {
  readonly lock: string;
  readonly how: How;
}

interface Member {
  readonly holds: Set<Want>;
  wants: Want | undefined;
  since: number;
  isDead: boolean;
}

const WEIGHT: Readonly<Record<How, number>> = { write: 2, read: 0, one: 1, both: 2 };

/** Whether a lock can be given to one more while others hold it: a writer is alone, readers are together, and permits are two. */
function fits(others: readonly How[], how: How): boolean {
  const isPermit = how === 'one' || how === 'both';
  if (!isPermit) return others.every((other) => other === 'read' && how === 'read');
  return others.reduce((sum, other) => sum + WEIGHT[other], WEIGHT[how]) <= 2;
}

/**
 * Knows who holds and who waits from the members themselves, computes the circles from that, and judges each wait that ends. It shares no
 * code with core.
 */
export class CircleJudge {
  readonly violations: string[] = [];
  /** How long each circle stood before it was ended, counted from the last fault where there was one, in milliseconds. */
  readonly stoodMs: number[] = [];
  readonly #members = new Map<number, Member>();
  /** The circles at present, by their members, with the time at which each began. */
  #circles = new Map<string, { readonly members: readonly number[]; readonly since: number }>();
  /** When each member was last in a circle that nobody has ended yet. */
  readonly #lastInCircle = new Map<number, number>();
  readonly #limitMs: number;
  /** How long ago a victim may have been in a circle: what is known of who has died, or stands still, is as old as a reading takes. */
  #oldestMs = 1;
  #lastFaultAt = Number.NEGATIVE_INFINITY;
  /** Whether the time at which a wait began is known: the answer to a member that stands still comes late. */
  #knowsAges = true;

  /** @param limitMs - how long a circle may stand */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  asks(id: number, want: Want): void {
    const member = this.#of(id);
    member.wants = want;
    member.since = performance.now();
    this.#look();
  }

  holds(id: number, want: Want): void {
    const member = this.#of(id);
    member.wants = undefined;
    member.holds.add(want);
    this.#look();
  }

  gives(id: number, want: Want): void {
    this.#of(id).holds.delete(want);
    this.#look();
  }

  dies(id: number): void {
    this.#look();
    this.#of(id).isDead = true;
    this.#oldestMs = this.#limitMs;
    this.#look();
  }

  /** Circles are to be found from `until` on: a member stands still, or what tells of a wait was lost. */
  disturbed(until: number, knowsAges: boolean): void {
    this.#lastFaultAt = Math.max(this.#lastFaultAt, until);
    this.#knowsAges &&= knowsAges;
    this.#oldestMs = this.#limitMs;
  }

  /** A wait has ended with the code of an error; `left` where its member gave it up. */
  refused(id: number, code: string): void {
    if (this.#of(id).isDead) return;
    this.#look();
    const circle = [...this.#circles.values()].find(({ members }) => members.includes(id));
    if (code === 'LOCK_DEADLOCK') this.#judgeVictim(id, circle !== undefined);
    else if (code !== 'left' && (circle !== undefined || code !== 'LOCK_TIMEOUT'))
      this.violations.push(`${id} ended with ${code}`);
    if (circle !== undefined && code !== 'left') this.#judgeAge(circle.since);
    for (const member of circle?.members ?? [id]) this.#lastInCircle.delete(member);
    this.#of(id).wants = undefined;
    this.#circles = this.#find();
    this.#look();
  }

  #judgeVictim(id: number, isInCircle: boolean): void {
    const age = performance.now() - (this.#lastInCircle.get(id) ?? Number.NEGATIVE_INFINITY);
    if (age > this.#oldestMs) this.violations.push(`${id} is a victim without a circle`);
    if (!isInCircle || !this.#knowsAges) return;
    // A younger wait may have joined after the reading: it ends another circle, whose youngest it is.
    const { since } = this.#of(id);
    const older = [...this.#stuck()].filter((other) => this.#of(other).since <= since + 1);
    if (!this.#reachedFrom(id, new Set(older)).has(id))
      this.violations.push(`${id} is a victim, and not the youngest`);
  }

  #judgeAge(since: number): void {
    const ms = performance.now() - Math.max(since, this.#lastFaultAt);
    this.stoodMs.push(ms);
    if (ms > this.#limitMs) this.violations.push(`a circle stood for ${Math.round(ms)} ms`);
  }

  #of(id: number): Member {
    let member = this.#members.get(id);
    if (member === undefined) {
      member = { holds: new Set(), wants: undefined, since: 0, isDead: false };
      this.#members.set(id, member);
    }
    return member;
  }

  #look(): void {
    const now = performance.now();
    const before = this.#circles;
    this.#circles = this.#find();
    for (const { members } of [...before.values(), ...this.#circles.values()])
      for (const id of members) this.#lastInCircle.set(id, now);
  }

  #find(): Map<string, { members: readonly number[]; since: number }> {
    const found = new Map<string, { members: readonly number[]; since: number }>();
    const stuck = this.#stuck();
    const reach = new Map([...stuck].map((id) => [id, this.#reachedFrom(id, stuck)]));
    for (const id of stuck) {
      if (reach.get(id)?.has(id) !== true) continue;
      const members = [...stuck].filter((other) => reach.get(id)?.has(other) && reach.get(other)?.has(id));
      const key = members.join(' ');
      found.set(key, { members, since: this.#circles.get(key)?.since ?? performance.now() });
    }
    return found;
  }

  /** Who never goes on, though all others end: everybody who may go on is taken to do so, and to give back what it holds. */
  #stuck(): Set<number> {
    const stuck = new Set<number>();
    for (const [id, { wants, isDead }] of this.#members) if (wants !== undefined && !isDead) stuck.add(id);
    const goesOn = (id: number): boolean => {
      const { lock, how } = this.#of(id).wants as Want;
      return fits(
        this.#holdersOf(lock, stuck).flatMap(([, hows]) => hows),
        how,
      );
    };
    for (let next: number | undefined; (next = [...stuck].find(goesOn)) !== undefined; ) stuck.delete(next);
    return stuck;
  }

  #reachedFrom(start: number, stuck: ReadonlySet<number>): Set<number> {
    const reached = new Set<number>();
    const toFollow = [start];
    for (const id of toFollow) {
      const { lock, how } = this.#of(id).wants as Want;
      for (const [other, hows] of this.#holdersOf(lock, stuck)) {
        if (reached.has(other) || hows.every((one) => one === 'read' && how === 'read')) continue;
        reached.add(other);
        toFollow.push(other);
      }
    }
    return reached;
  }

  #holdersOf(lock: string, among: ReadonlySet<number>): [id: number, hows: How[]][] {
    return [...among].flatMap((id): [number, How[]][] => {
      const hows = [...this.#of(id).holds].filter((hold) => hold.lock === lock).map((hold) => hold.how);
      return hows.length === 0 ? [] : [[id, hows]];
    });
  }
}
