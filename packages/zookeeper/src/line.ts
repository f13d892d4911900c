import { compareSequences, parseSeat, type SeatName } from './names.ts';

/** Those who hold a resource or wait for it, in their order. */
export class Line {
  readonly seats: readonly SeatName[];

  constructor(children: readonly string[]) {
    this.seats = children
      .map(parseSeat)
      .filter((seat) => seat !== undefined)
      .sort((a, b) => compareSequences(a.sequence, b.sequence) || (a.name < b.name ? -1 : 1));
  }

  of(acquisitionId: string): readonly SeatName[] {
    return this.seats.filter((seat) => seat.acquisitionId === acquisitionId);
  }

  /**
   * The seat that this one must wait for, and watch: the nearest before it that keeps it from holding, so that one
   * change wakes one waiter. `undefined`: it holds (docs/spec.md §15.2).
   */
  blockerOf(seat: SeatName): SeatName | undefined {
    const before = this.seats.slice(0, this.seats.indexOf(seat));
    return seat.seat === 'x' ? before.at(-1) : before.findLast((other) => other.seat === 'x');
  }

  get holders(): readonly SeatName[] {
    return this.seats.filter((seat) => this.blockerOf(seat) === undefined);
  }

  get waiters(): readonly SeatName[] {
    return this.seats.filter((seat) => this.blockerOf(seat) !== undefined);
  }
}
