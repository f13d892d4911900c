import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { DuringHold, OperationKind } from './plan.ts';

const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];
const TIDY_DURING = ['renew', 'extend', 'downgrade', 're-enter', 're-enter twice'] as const;
const ENDING_SOONER = ['shorten', 'shorten', 'longer, shorter'] as const;

/** Of what a run has much. Each run draws its own parts: so what is rare meets in some runs, and not once in each of many. */
export interface Emphasis {
  /** Nothing fails but messages, and every lease is released: then nobody waits for what is free, and nothing is left. */
  readonly isTidy: boolean;
  /** What an operator does, who takes locks away; empty: there is none, since that makes some promises void. */
  readonly operatorKinds: readonly OperationKind[];
  /** Parts of the operations, from 0 to 1. */
  readonly operator: number;
  readonly together: number;
  readonly exclusive: number;
  readonly odd: number;
  readonly manual: number;
  readonly forgotten: number;
  readonly during: number;
  readonly aborts: number;
  readonly longHolds: number;
  /** The part of the resources that are semaphores. */
  readonly permits: number;
  readonly duringKinds: readonly DuringHold[];
  readonly ttlsMs: readonly number[];
  /** How many clients a process has: at least, at most. */
  readonly clients: readonly [number, number];
  /** How many operations a client does at most. */
  readonly operations: number;
  /** The longest pause before an operation. */
  readonly pauseMs: number;
  /** The longest hold; `undefined`: it is drawn by the ttl. */
  readonly holdMs: number | undefined;
  /** An abort comes within this time; `undefined`: at any time. */
  readonly abortWithinMs: number | undefined;
}

export function drawEmphasis(random: SeededRandom): Emphasis {
  const isTidy = random.chance(0.15);
  const hasOperator = !isTidy && random.chance(0.15);
  const hasAllKinds = random.chance(0.5);
  const duringKinds: readonly DuringHold[] = isTidy ? TIDY_DURING : [...TIDY_DURING, ...ENDING_SOONER];
  const operatorKinds = hasAllKinds ? OPERATOR_KINDS : [random.pick(OPERATOR_KINDS)];
  return {
    isTidy,
    operatorKinds: hasOperator ? operatorKinds : [],
    operator: random.pick([0.25, 0.5]),
    together: random.pick([0.12, 0.12, 0.12, 0.5]),
    exclusive: random.pick([0.6, 0.6, 0.9, 0.25]),
    odd: random.pick([0, 0, 0.04, 0.04, 0.3]),
    manual: isTidy ? 0 : random.pick([0.3, 0.3, 0.1, 0.6]),
    forgotten: isTidy ? 0 : random.pick([0.17, 0.17, 0.05, 0.4]),
    during: random.pick([0.4, 0.4, 0.1, 0.7]),
    aborts: 0.12,
    longHolds: 1 / 3,
    permits: hasOperator && operatorKinds.includes('resize') ? 0.7 : 0.3,
    duringKinds: random.chance(0.5) ? duringKinds : [random.pick(duringKinds)],
    ttlsMs: random.pick([
      [60, 150, 400, 1_000],
      [60, 150, 400, 1_000],
      [60, 150],
      [400, 1_000],
    ]),
    clients: [1, 3],
    operations: 3,
    pauseMs: 150,
    holdMs: undefined,
    abortWithinMs: undefined,
  };
}
