import { faultOf, type Strike } from '../faults.ts';
import type { RunRecord, Span } from './run-record.ts';

/** When something was done to a worker, or to the machine, that excuses its delays. */
export class Disturbances {
  readonly #stalls: RunRecord['stalls'];
  readonly #machine: readonly Span[];
  readonly #strikes: readonly (Span & { readonly worker: string })[];

  /**
   * @param machine - when the process that judges stood still itself
   * @param recoveryMs - how long a client may take to connect again after its network was broken
   */
  constructor(
    { stalls }: RunRecord,
    strikes: readonly Strike[],
    machine: readonly Span[],
    recoveryMs: number,
  ) {
    this.#stalls = stalls;
    this.#machine = machine;
    this.#strikes = strikes.map(({ fault, worker, from, until }) => ({
      worker,
      from,
      until: faultOf(fault).on === 'network' ? until + recoveryMs : until,
    }));
  }

  /** Whether nothing happened to the worker in a time. */
  isQuiet(worker: string, during: Span): boolean {
    return (
      !this.#strikes.some((strike) => strike.worker === worker && meets(strike, during)) &&
      this.#stalledMs(worker, during) === 0
    );
  }

  /** For how long the worker stood still in a time. */
  #stalledMs(worker: string, during: Span): number {
    let sum = 0;
    for (const stalls of [this.#stalls.get(worker) ?? [], this.#machine])
      for (const stall of stalls) if (meets(stall, during)) sum += stall.until - stall.from;
    return sum;
  }

  /** How much longer than `boundMs` something took, without the time for which the worker stood still; 0 or less: it was in time. */
  excessMs(worker: string, during: Span, boundMs: number): number {
    return during.until - during.from - boundMs - this.#stalledMs(worker, during);
  }
}

function meets(one: Span, other: Span): boolean {
  return one.from <= other.until && other.from <= one.until;
}
