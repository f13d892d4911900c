import { floorOf, paired } from '../compare/comparison.ts';
import { median } from '../measure/quantiles.ts';
import { openTestbed } from '../conduct/testbed.ts';
import type { Target } from '../report/report.ts';
import { filesStore } from '../stores/files.ts';
import { idleRow, killRow } from './rows.ts';
import { settingsFor } from './settings.ts';
import { type StoreReport, type StoreSuite, workload } from './stores.ts';
import { judgeOurs, noOverlap, speedOver, targetOf } from './targets.ts';

const FREE = 1.5;
const HAND_OFFS = 600;
const SHORTER_WAIT = 10;
const IDLE_CORES = 0.003;
const GAP_MS = 20;
const ONE_PROCESS = { processes: 1, waitersEach: 32 };

/** `bench files`: locks of one machine without a server. */
export const filesSuite: StoreSuite = {
  name: 'files',
  rows: [...workload, idleRow([ONE_PROCESS, { processes: 100, waitersEach: 1 }]), killRow],
  open: () => openTestbed(filesStore.start),
  // Who polls lets each of 32 waiters in within a second or two.
  settings: (options) => ({ ...settingsFor(options), burstLimitMs: 10_000, turnsLimitMs: 10_000 }),
  judge,
};

function judge({ comparisons, idle = [], killed = [] }: StoreReport): Target[] {
  return [
    ...judgeOurs(comparisons, (comparison, result, target) => {
      const peer = floorOf(comparison, result);
      if (!comparison.contended) {
        if (peer === undefined) return [];
        const ratio = speedOver(result, peer);
        return [target(`≥ ${FREE} × ${peer.name}`, ratio.toFixed(2), ratio >= FREE)];
      }
      if (comparison.id !== 'processes') return [noOverlap(result, target)];
      const perSecond = median(result.rounds.map((round) => round.perSecond));
      const targets = [target(`≥ ${HAND_OFFS} hand-offs/s`, perSecond.toFixed(0), perSecond >= HAND_OFFS)];
      if (peer !== undefined) {
        const shorter = paired(result, peer, (own, other) => other.waitP99Ms / own.waitP99Ms);
        const asked = `the longest wait ≤ 1/${SHORTER_WAIT} of ${peer.name}`;
        targets.push(target(asked, `1/${shorter.toFixed(1)}`, shorter >= SHORTER_WAIT));
      }
      return [...targets, noOverlap(result, target)];
    }),
    ...idle
      .filter(({ contender, processes }) => contender === '@locks/file' && processes === 1)
      .map(({ contender, cores }) =>
        targetOf('idle', contender)(
          `32 waiters: ≤ ${100 * IDLE_CORES} % of a core`,
          `${(100 * cores).toFixed(2)} %`,
          cores <= IDLE_CORES,
        ),
      ),
    ...killed.map(({ contender, p50Ms }) =>
      targetOf('kill', contender)(`gap ≤ ${GAP_MS} ms`, p50Ms.toFixed(1), p50Ms <= GAP_MS),
    ),
  ];
}
