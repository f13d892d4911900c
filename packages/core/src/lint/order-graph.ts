import type { Place } from './place.ts';

/** A lock that code asked for. */
export interface AskedLock {
  readonly name: string;
  /** The name of the backend. */
  readonly backend: string;
  /** Absent where `all` took the lock together with others, before anybody listened, or when enough places of its class were known. */
  place: Place | undefined;
}

/** One lock that was asked for while another one was held. */
export interface Sighting {
  readonly held: AskedLock;
  readonly asked: AskedLock;
}

/** Whether the second of two locks comes after the first one in the order of their names, which `all` keeps, or before it. */
type Direction = 'up' | 'down';

/** The first sighting of each direction in which a lock of one class was asked for while one of another class was held. */
type Order = Partial<Record<Direction, Sighting>>;

/** How a search came to a class. Whole ways are made of the last steps only, so that a search takes no more memory than the graph. */
interface Step {
  readonly at: string;
  /** Whether the way here has an order of the wanted direction. */
  readonly hasTurned: boolean;
  /** The last order of the way, and the step before it; absent at the start. */
  readonly last: { readonly before: Step; readonly sighting: Sighting } | undefined;
}

/**
 * The orders in which locks were taken, between classes of locks: a circle of orders may become a deadlock, whether or not it ever did
 * (the lock dependency validator of Linux, Documentation/locking/lockdep-design.rst).
 *
 * Names are in one order, so that locks which were taken in the order of their names alone never deadlock, in whatever order that puts
 * their classes. A circle counts where one of its orders went up, and one down.
 */
export class OrderGraph {
  readonly #classOf: (name: string) => string;
  readonly #most: number;
  readonly #orders = new Map<string, Map<string, Order>>();
  /** The classes to which an order leads. */
  readonly #asked = new Set<string>();
  readonly #counts: Record<Direction, number> = { up: 0, down: 0 };

  constructor(classOf: (name: string) => string, most: number) {
    this.#classOf = classOf;
    this.#most = most;
  }

  /** Whether no further order is kept. */
  get isFull(): boolean {
    return this.#counts.up + this.#counts.down >= this.#most;
  }

  /** Adds what was seen. Gives the circle that it closes, beginning with itself; `undefined` where it closes none, or is known. */
  add(sighting: Sighting): readonly Sighting[] | undefined {
    const { held, asked } = sighting;
    const [from, to] = [this.keyOf(held), this.keyOf(asked)];
    const direction = directionOf(sighting);
    const known = this.#orders.get(from)?.get(to);
    if (known?.[direction] !== undefined || this.isFull) return undefined;
    const orders = this.#orders.get(from) ?? new Map<string, Order>();
    this.#orders.set(from, orders.set(to, { ...known, [direction]: sighting }));
    this.#counts[direction] += 1;
    const opposite = direction === 'up' ? 'down' : 'up';
    this.#asked.add(to);
    // A search that finds nothing passes much of the graph. Most code keeps to one direction, and begins with other locks than it ends with.
    const mayReturn = this.#counts[opposite] > 0 && this.#asked.has(from);
    const way = mayReturn ? this.#wayBack(to, from, opposite) : undefined;
    return way && [sighting, ...way];
  }

  /** The shortest way from one class to another over an order of a direction. */
  #wayBack(start: string, end: string, over: Direction): readonly Sighting[] | undefined {
    const steps: Step[] = [{ at: start, hasTurned: false, last: undefined }];
    const seen = { turned: new Set<string>(), straight: new Set<string>() };
    // The list grows while it is read.
    for (const before of steps) {
      for (const [at, order] of this.#orders.get(before.at) ?? []) {
        const turning = order[over];
        const hasTurned = before.hasTurned || turning !== undefined;
        const passed = hasTurned ? seen.turned : seen.straight;
        const sighting = turning ?? order.up ?? order.down;
        if (sighting === undefined || passed.has(at)) continue;
        passed.add(at);
        const step = { at, hasTurned, last: { before, sighting } };
        if (at === end && hasTurned) return wayOf(step);
        steps.push(step);
      }
    }
    return undefined;
  }

  /** Whether `add` would keep this. */
  isNew(sighting: Sighting): boolean {
    if (this.isFull) return false;
    const { held, asked } = sighting;
    return this.#orders.get(this.keyOf(held))?.get(this.keyOf(asked))?.[directionOf(sighting)] === undefined;
  }

  /** The class of a lock, in its kind of store. */
  keyOf({ name, backend }: AskedLock): string {
    return `${backend} ${this.#classOf(name)}`;
  }
}

/** The order of `membersOf`, in which `all` takes its locks. */
function directionOf({ held, asked }: Sighting): Direction {
  if (held.name === asked.name) return held.backend < asked.backend ? 'up' : 'down';
  return held.name < asked.name ? 'up' : 'down';
}

function wayOf({ last }: Step): Sighting[] {
  const way: Sighting[] = [];
  for (let one = last; one !== undefined; one = one.before.last) way.push(one.sighting);
  return way.reverse();
}
