import { collectHistory } from './collect-history.ts';
import { HistoryError, show } from './history-error.ts';
import type { HistoryEvent } from './history-event.ts';
import { type CertainHold, type HistoryVerdict, type HistoryViolation, Narrator } from './history-verdict.ts';
import { judgeAcquisition } from './judge-acquisition.ts';
import { judgeResource } from './judge-resource.ts';

/**
 * A promise of a lock beside exclusion and ownership. `fenced`: every grant has a token. `reentrant`: an acquisition may be
 * granted again while it holds.
 */
export type HistoryExpectation = 'fenced' | 'reentrant';

const EXPECTATIONS: readonly HistoryExpectation[] = ['fenced', 'reentrant'];

// setup: import { checkHistory, parseHistory } from '@locks/history';
// setup: declare const lines: string;
/**
 * Judges a history. It always checks that acquisitions which exclude each other never hold at once, that permits stay within
 * their limit, that only the owner enters again and releases, and that tokens, where there are any, rise from each holder to
 * the next one that it excludes. An operation without an outcome never counts against the lock. The check takes O(n log n) time
 * for n operations.
 *
 * @param events - of `readHistory()`, of `parseHistory()`, or a list
 * @param expectations - what the lock promises in addition
 * @throws HistoryError `LOCK_INVALID_ARGUMENT` for a malformed history, with the `line`, and for an unknown expectation
 * @example
 * ```ts
 * const { operations, violations } = checkHistory(parseHistory(lines), 'fenced');
 * console.log(`${operations} operations, ${violations.length} violations`);
 * for (const { sentence } of violations) console.log(sentence);
 * ```
 */
export function checkHistory(
  events: Iterable<HistoryEvent>,
  ...expectations: readonly HistoryExpectation[]
): HistoryVerdict {
  const unknown = expectations.find((one) => !EXPECTATIONS.includes(one));
  if (unknown !== undefined)
    throw new HistoryError(
      `checkHistory(): an expectation must be ${EXPECTATIONS.join(' or ')}, not ${show(unknown)}.`,
    );
  const expected = {
    fenced: expectations.includes('fenced'),
    reentrant: expectations.includes('reentrant'),
  };
  const { operations, startedAt, resources, crashes } = collectHistory(events);
  const narrator = new Narrator(startedAt);
  const violations: HistoryViolation[] = [];
  let holdsInAll = 0;
  let longestIdleMs = 0;
  for (const [resource, acquisitions] of resources) {
    const holds: CertainHold[] = [];
    for (const acquisition of acquisitions.values()) {
      const { hold, violations: own } = judgeAcquisition(acquisition, crashes, expected, narrator);
      if (hold !== undefined) holds.push(hold);
      for (const violation of own) violations.push(violation);
    }
    const judged = judgeResource(resource, holds, narrator);
    for (const violation of judged.violations) violations.push(violation);
    longestIdleMs = Math.max(longestIdleMs, judged.longestIdleMs);
    holdsInAll += holds.length;
  }
  return { operations, holds: holdsInAll, violations, longestIdleMs };
}
