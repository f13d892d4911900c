import { EventQueue, type ScheduledEvent } from './event-queue.ts';
import { SeededRandom } from './seeded-random.ts';

/** So many turns of Node's event loop are asked for at once: each costs a system call, and only drains microtasks. */
const TURNS_AT_ONCE = 64;
/** A schedule of the default size has some 500 events. */
const MOST_EVENTS = 60_000;
const MOST_EVENTS_AFTER = 2_000;

/** One line of a timeline. */
export interface TimelineEntry {
  /** In milliseconds of true time. */
  readonly at: number;
  /** The process or the store. */
  readonly who: string;
  readonly what: string;
}

/** Why a schedule failed: the promise of docs/spec.md that did not hold. */
export interface Violation {
  /** In milliseconds of true time. */
  readonly at: number;
  readonly clause: string;
  readonly message: string;
}

/** True time, what happens in it, and what went wrong. No process of the simulation can read it. */
export class World {
  readonly random: SeededRandom;
  readonly faults: Record<string, number> = {};
  readonly violations: Violation[] = [];
  /** True times in which somebody may have counted on what the store had lost. */
  readonly losses: { readonly from: number; readonly until: number }[] = [];
  /** Whether a run goes on after a violation: what a trace shows of it may come later. */
  goesOn = false;
  /** What the documents of a store that lost data allow. */
  readonly expected: Violation[] = [];
  readonly timeline: TimelineEntry[] | undefined;
  readonly #queue = new EventQueue();
  /** The time that everybody reads: ahead of the present event where its process stood still in the middle of it. */
  #now = 0;
  /** The time of the present event. */
  #eventAt = 0;
  #turn = 0;
  #steps = 0;
  /** After a violation, the number of events after which the run ends. */
  #endsAt: number | undefined;
  /** True time until which leases may be held that the store has lost. */
  #lossLastsUntil = Number.NEGATIVE_INFINITY;

  constructor(seed: number, keepsTimeline: boolean) {
    this.random = new SeededRandom(seed);
    this.timeline = keepsTimeline ? [] : undefined;
  }

  /** True time, in milliseconds since the start. */
  get now(): number {
    return this.#now;
  }

  /** The number of the present event, another one while the world is looked at between two events. */
  get turn(): number {
    return this.#turn;
  }

  /** Whether the present event goes on at a later time than that of the others: its process stood still in the middle of it. */
  get isAhead(): boolean {
    return this.#now > this.#eventAt;
  }

  /**
   * What is left of the present event, with all its microtasks, happens at this true time. It runs at once all the same: nothing reaches
   * its process before that time, and what it sends leaves then.
   */
  goAhead(until: number): void {
    this.#now = Math.max(this.#now, until);
  }

  /** How many events have happened. */
  get steps(): number {
    return this.#steps;
  }

  schedule(at: number, happen: () => void): ScheduledEvent {
    return this.#queue.add(Math.max(at, this.#now), happen);
  }

  /** Adds a line to the timeline, if one is kept. */
  note(who: string, what: () => string): void {
    this.timeline?.push({ at: this.#now, who, what: what() });
  }

  countFault(kind: string): void {
    this.faults[kind] = (this.faults[kind] ?? 0) + 1;
  }

  /** The store has lost data by itself. Until this true time somebody may count on what it has lost. */
  dataWasLost(until: number): void {
    this.losses.push({ from: this.#now, until });
    this.#lossLastsUntil = Math.max(this.#lossLastsUntil, until);
  }

  /** Whether somebody may count on something that the store has lost. */
  get isDataLost(): boolean {
    return this.#now <= this.#lossLastsUntil;
  }

  /** What a store cannot keep after it lost data: the documents say so, and the fence must stop what follows from it. */
  violatedUnlessLost(clause: string, message: string): void {
    if (!this.isDataLost) return this.violated(clause, message);
    this.expected.push({ at: this.#now, clause, message });
    this.note('CHECK', () => `expected, since the store lost data: ${clause}, ${message}`);
  }

  violated(clause: string, message: string): void {
    this.violations.push({ at: this.#now, clause, message });
    this.note('CHECK', () => `${clause} violated: ${message}`);
  }

  /**
   * Lets events happen until `isOver`, a violation, or the end of all events. Before each event all microtasks of the one before
   * have run, and then `check`.
   */
  run(isOver: () => boolean, check: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      let ended = false;
      let turns = TURNS_AT_ONCE;
      const turn = (): void => {
        if (!ended) {
          try {
            ended = this.#step(isOver, check);
          } catch (error) {
            ended = true;
            reject(error);
          }
        }
        if (!ended) setImmediate(turn);
        else if ((turns -= 1) === 0) resolve();
      };
      for (let started = 0; started < TURNS_AT_ONCE; started += 1) setImmediate(turn);
    });
  }

  /** Whether the run is over. */
  #step(isOver: () => boolean, check: () => void): boolean {
    this.#now = this.#eventAt;
    this.#turn += 1;
    check();
    if (this.violations.length > 0) this.#endsAt ??= this.#steps + (this.goesOn ? MOST_EVENTS_AFTER : 0);
    if (this.#steps >= (this.#endsAt ?? Infinity) || isOver()) return true;
    const event = this.#queue.take();
    if (event === undefined) return true;
    this.#now = this.#eventAt = Math.max(this.#now, event.at);
    this.#turn += 1;
    this.#steps += 1;
    if (this.#steps > MOST_EVENTS) {
      this.violated('§7.6', `no end after ${MOST_EVENTS} events: a tight loop`);
      return true;
    }
    event.happen();
    return false;
  }
}
