import { type Comparison, type ContenderResult, overlapsOf, paired } from '../compare/comparison.ts';
import type { Target } from '../report/report.ts';

export type MakeTarget = (asked: string, measured: string, reached: boolean) => Target;

export function targetOf(row: string, contender: string): MakeTarget {
  return (asked, measured, reached) => ({ row, contender, asked, measured, reached });
}

/** The targets of ours in each comparison. */
export function judgeOurs(
  comparisons: readonly Comparison[],
  judge: (comparison: Comparison, result: ContenderResult, target: MakeTarget) => readonly Target[],
): Target[] {
  return comparisons.flatMap((comparison) =>
    comparison.contenders
      .filter(({ kind }) => kind === 'ours')
      .flatMap((result) => judge(comparison, result, targetOf(comparison.id, result.name))),
  );
}

export function noOverlap(result: ContenderResult, target: MakeTarget, asked = 'no overlap'): Target {
  const overlaps = overlapsOf(result);
  return target(asked, String(overlaps), overlaps === 0);
}

/** More hand-offs a second than each peer, and a shorter longest wait. */
export function aheadOfPeers(
  { contenders }: Comparison,
  result: ContenderResult,
  target: MakeTarget,
): Target[] {
  return contenders
    .filter(({ kind }) => kind === 'peer')
    .map((peer) => {
      const speed = speedOver(result, peer);
      const wait = paired(result, peer, (ours, theirs) => theirs.waitP99Ms / ours.waitP99Ms);
      const measured = `× ${speed.toFixed(2)} hand-offs/s, p99 ÷ ${wait.toFixed(2)}`;
      return target(`ahead of ${peer.name}`, measured, speed > 1 && wait > 1);
    });
}

export function speedOver(result: ContenderResult, other: ContenderResult): number {
  return paired(result, other, (one, two) => one.perSecond / two.perSecond);
}
