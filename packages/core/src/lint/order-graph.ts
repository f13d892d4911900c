import type { Place } from './place.ts';

/** A lock that code asked for. */
export interface AskedLock {
  readonly name: string;
  /** The name of the backend. */
  readonly backend: string;
  /** Absent where `all` took the lock together with others, or before anybody listened. */
  readonly place: Place | undefined;
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
  #count = 0;

  constructor(classOf: (name: string) => string, most: number) {
    this.#classOf = classOf;
    this.#most = most;
  }

  /** Whether no further order is kept. */
  get isFull(): boolean {
    return this.#count >= this.#most;
  }

  /** Adds what was seen. Gives the circle that it closes, beginning with itself; `undefined` where it closes none, or is known. */
  add(sighting: Sighting): readonly Sighting[] | undefined {
    const { held, asked } = sighting;
    const [from, to] = [this.#keyOf(held), this.#keyOf(asked)];
    const direction = directionOf(sighting);
    const known = this.#orders.get(from)?.get(to);
    if (known?.[direction] !== undefined || this.isFull) return undefined;
    const orders = this.#orders.get(from) ?? new Map<string, Order>();
    this.#orders.set(from, orders.set(to, { ...known, [direction]: sighting }));
    this.#count += 1;
    const way = this.#wayBack(to, from, direction === 'up' ? 'down' : 'up');
    return way && [sighting, ...way];
  }

  /** The shortest way from one class to another over an order of a direction. */
  #wayBack(start: string, end: string, over: Direction): readonly Sighting[] | undefined {
    interface Step {
      readonly at: string;
      readonly hasTurned: boolean;
      readonly way: readonly Sighting[];
    }
    const steps: Step[] = [{ at: start, hasTurned: false, way: [] }];
    const seen = new Set<string>();
    // The list grows while it is read.
    for (const { at, hasTurned, way } of steps) {
      for (const [next, order] of this.#orders.get(at) ?? []) {
        const turning = order[over];
        const sighting = turning ?? order.up ?? order.down;
        if (sighting === undefined) continue;
        const step = { at: next, hasTurned: hasTurned || turning !== undefined, way: [...way, sighting] };
        if (next === end && step.hasTurned) return step.way;
        const state = `${step.hasTurned} ${next}`;
        if (!seen.has(state)) steps.push(step);
        seen.add(state);
      }
    }
    return undefined;
  }

  #keyOf({ name, backend }: AskedLock): string {
    return `${backend} ${this.#classOf(name)}`;
  }
}

/** The order of `membersOf`, in which `all` takes its locks. */
function directionOf({ held, asked }: Sighting): Direction {
  if (held.name === asked.name) return held.backend < asked.backend ? 'up' : 'down';
  return held.name < asked.name ? 'up' : 'down';
}
