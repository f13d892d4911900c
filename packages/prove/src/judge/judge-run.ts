import type { HistoryViolation, HistoryViolationKind } from '@locks/history';
import { NAMES } from '../names.ts';
import type { PromiseProof } from '../proof.ts';
import type { Findings, JudgedRun } from './findings.ts';
import { judgeCrashes } from './judge-crashes.ts';
import { judgeOrder } from './judge-order.ts';
import type { ObservedHold } from './run-record.ts';
import { judgeAborts, judgeWaits } from './judge-waits.ts';

const MOST_BREACHES = 5;
const OF_EXCLUSION: readonly HistoryViolationKind[] = [
  'exclusion',
  'reentry',
  'mode-change',
  'reuse',
  'owner',
  'release',
];
const OF_PERMITS: readonly HistoryViolationKind[] = ['capacity', 'limit'];
const OF_TOKENS: readonly HistoryViolationKind[] = ['token-order', 'token-change', 'token-missing'];

/** Every promise, with how often the run tested it. */
export function judgeRun(run: JudgedRun): PromiseProof[] {
  const { record, capabilities } = run;
  const { holds, verdict } = record;
  const has = (mode: 'shared' | 'permit'): boolean => capabilities.modes.includes(mode);
  const named = (name: string) => holds.filter(({ resource }) => resource === `${run.prefix}${name}`);
  const broken = (kinds: readonly HistoryViolationKind[]): string[] =>
    verdict.violations.filter(({ kind }) => kinds.includes(kind)).map(({ sentence }) => sentence);
  return [
    proof(
      'exclusion',
      'While a holder is told that it holds, nobody holds who excludes it.',
      ['11.1'],
      'grants',
      {
        tested: holds.length,
        breaches: broken(OF_EXCLUSION),
      },
    ),
    proof(
      'readers',
      'Readers share a lock, and no writer holds beside them.',
      ['15.1'],
      'grants of readers and writers',
      has('shared') && {
        tested: named(NAMES.readersWriter).length,
        breaches: sentencesOf(verdict.violations, `${run.prefix}${NAMES.readersWriter}`),
      },
    ),
    proof(
      'permits',
      'No more permits are held than there are.',
      ['15.5'],
      'grants of permits',
      has('permit') && { tested: named(NAMES.permits).length, breaches: broken(OF_PERMITS) },
    ),
    proof(
      'tokens',
      'The fencing token rises from each holder to the next.',
      ['6.1'],
      'tokens',
      capabilities.fencing !== 'none' && {
        tested: holds.filter(({ hasToken }) => hasToken).length,
        breaches: broken(OF_TOKENS),
      },
    ),
    proof(
      'loss',
      'A holder is told that its lock is lost before another is in.',
      ['8.1', '8.2'],
      'losses',
      lossesOf(run),
    ),
    proof(
      'renewal',
      'A lease that is renewed stays, for longer than its ttl.',
      ['4.2'],
      'long holds',
      !run.isOther && renewalsOf(run),
    ),
    proof(
      'crash',
      'The lock of a dead holder goes to a waiter within its ttl, the margin of the store and a second.',
      ['1.6', '7.7'],
      'locks of killed workers',
      judgeCrashes(run),
    ),
    proof(
      'order',
      'First come, first served, across processes.',
      ['7.1'],
      'grants to somebody who came later than a waiter',
      capabilities.order === 'fifo' && judgeOrder(run),
    ),
    proof('waits', 'Every wait ends within its time.', ['7.5'], 'waits', judgeWaits(run)),
    proof('aborts', 'An abort ends a wait at once.', ['7.8'], 'aborts', !run.isOther && judgeAborts(run)),
    proof('nothing-left', 'Nothing is left behind: no hold, and no waiter.', ['7.2'], 'names at the end', {
      tested: new Set(holds.map(({ resource }) => resource)).size,
      breaches: run.leftBehind.map(({ name, what }) => `${JSON.stringify(name)} ${what}.`),
    }),
  ];
}

/** @param findings - `false`: the locks do not promise it */
function proof(
  id: string,
  promise: string,
  clauses: readonly string[],
  tests: string,
  findings: Findings | false,
): PromiseProof {
  const shared = { id, promise, clauses, tests };
  if (findings === false) return { ...shared, tested: 0, verdict: 'not promised', broken: 0, breaches: [] };
  const { tested, breaches, measured } = findings;
  return {
    ...shared,
    tested,
    verdict: breaches.length > 0 ? 'broken' : tested > 0 ? 'kept' : 'not tested',
    ...(measured !== undefined && { measured }),
    broken: breaches.length,
    breaches: breaches.slice(0, MOST_BREACHES),
  };
}

function sentencesOf(violations: readonly HistoryViolation[], resource: string): string[] {
  return violations.filter((one) => one.resource === resource).map(({ sentence }) => sentence);
}

/** A loss that came too late, or never, shows as a second holder beside one that has lost its lock, or should have. */
function lossesOf({ record, disturbances }: JudgedRun): Findings {
  const lost = record.holds.filter(({ end }) => end === 'lost');
  const ids = new Set(lost.map(({ resource, acquisitionId }) => `${resource} ${acquisitionId}`));
  const breaches = record.verdict.violations.filter(({ kind, operations }) => {
    if (kind !== 'exclusion' && kind !== 'capacity') return false;
    return operations.some(
      ({ resource, acquisitionId, process, invokedAt, completedAt = invokedAt }) =>
        ids.has(`${resource} ${acquisitionId}`) ||
        !disturbances.isQuiet(process, { from: invokedAt, until: completedAt }),
    );
  });
  return { tested: lost.length, breaches: breaches.map(({ sentence }) => sentence) };
}

function renewalsOf({ record, disturbances, prefix, holdMs }: JudgedRun): Findings {
  const long = record.holds.filter(({ resource }) => resource === `${prefix}${NAMES.renewed}`);
  // A fault shortly before a hold may reach into it.
  const undisturbed = long.filter(({ worker, askedAt, from, until, end }) =>
    end === 'crashed' || end === 'open'
      ? false
      : disturbances.isQuiet(worker, { from: Math.max(askedAt, from - holdMs), until }),
  );
  // A store that does not answer renews nothing: its holder is told so.
  const isSilence = ({ resource, acquisitionId }: ObservedHold): boolean =>
    record.lossReasons.get(`${resource} ${acquisitionId}`) === 'unconfirmed';
  const lost = undisturbed.filter((one) => one.end === 'lost' && !isSilence(one));
  const kept = undisturbed.filter(
    ({ from, until, end }) => end === 'released' && until - from > 1.2 * holdMs,
  );
  return {
    tested: kept.length + lost.length,
    breaches: lost.map(({ worker }) => `${worker} lost a lock that it renewed, and nothing was done to it.`),
  };
}
