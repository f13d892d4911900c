import { faultOf, type Strike } from '../faults.ts';
import type { RunRecord, Span } from './run-record.ts';

const LONG_STALL_MS = 200;
/** A stall takes its own time, and moves the end of a wait by twice that at most: docs/spec.md §2.9. */
const STALL_CREDIT = 3;

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

  /** Whether nothing happened to the worker in a time; every timer of a busy machine is a little late. */
  isQuiet(worker: string, during: Span): boolean {
    return (
      !this.#strikes.some((strike) => strike.worker === worker && meets(strike, during)) &&
      !this.#stallsOf(worker, during).some(({ from, until }) => until - from > LONG_STALL_MS)
    );
  }

  #stallsOf(worker: string, during: Span): Span[] {
    return [...(this.#stalls.get(worker) ?? []), ...this.#machine].filter((stall) => meets(stall, during));
  }

  /** How much longer than `boundMs` something took, without the time for which the worker stood still; 0 or less: it was in time. */
  excessMs(worker: string, during: Span, boundMs: number): number {
    const tookMs = during.until - during.from;
    if (tookMs <= boundMs) return tookMs - boundMs;
    const stalledMs = this.#stallsOf(worker, during).reduce((sum, { from, until }) => sum + until - from, 0);
    return tookMs - boundMs - STALL_CREDIT * stalledMs;
  }
}

function meets(one: Span, other: Span): boolean {
  return one.from <= other.until && other.from <= one.until;
}
