import type { RuleBook } from './trace-rules.ts';
import {
  awakeMs,
  believedUntil,
  checkAcquisition,
  type PlacedLine,
  type TracedAcquisition,
} from './traced-acquisition.ts';

/** What is owed is sent within this time: abandons of thousands wait for each other. */
const OWED_WITHIN_MS = 3_000;
/** The end of a lease by its time is told within this time by a process that runs. */
const TOLD_WITHIN_MS = 1_000;
const AWAKE_MS = 50;
/** A process that runs renews a lease within this time after its renewal is due. */
const RENEWS_WITHIN_MS = 20;

/** What had to follow, and did not: only where the trace goes on for long enough, and is complete. */
export function judgeEnds(acquisitions: Iterable<TracedAcquisition>, book: RuleBook): void {
  for (const one of acquisitions) {
    if (one.process.isIncomplete) continue;
    judgeDebt(one, book);
    judgeEndByTime(one, book);
  }
}

function judgeDebt(one: TracedAcquisition, book: RuleBook): void {
  const { end, granted, believed, gaveUp, abandon, sent } = one;
  if (one.isWhole && granted !== undefined && believed === undefined && goesOn(granted, one)) {
    const what = 'it was granted, not believed, and not abandoned';
    checkAcquisition(book, 'given-back', abandon !== undefined, one, what, granted);
  }
  // What ends a lease sends its release or its abandon at once.
  if (end !== undefined && goesOn(end, one, 0)) {
    const what = `its lease ended as ${end.event.why}, and it was not given back`;
    const given = givenBack(one, end.event.why);
    if (given !== undefined) checkAcquisition(book, 'given-back', given.by !== undefined, one, what, end);
  }
  if (gaveUp === undefined || one.attempts === 0 || !goesOn(gaveUp, one)) return;
  const what = 'its acquire gave up, and did not abandon it';
  checkAcquisition(book, 'abandoned', abandon !== undefined, one, what, sent, gaveUp);
}

/** Whether the manager goes on for some time after a line: then what is owed must have been sent. */
function goesOn(since: PlacedLine, { client, process }: TracedAcquisition, forMs = OWED_WITHIN_MS): boolean {
  const end = client.closed ?? (process.lines.at(-1) as PlacedLine);
  return end.time - since.time > forMs;
}

function judgeEndByTime(one: TracedAcquisition, book: RuleBook): void {
  const { believed, end, lost, renewal, process } = one;
  if (believed === undefined) return;
  const until = believedUntil(one);
  const runsAfter = (from: number): boolean => awakeMs(process, from, Number.POSITIVE_INFINITY) > AWAKE_MS;
  if (lost !== undefined && runsAfter(lost.time + AWAKE_MS))
    checkAcquisition(
      book,
      'renewal-lost',
      end !== undefined,
      one,
      'a renewal found it lost, and its end was not told',
      lost,
    );
  if (one.client.capabilities.tenure === 'session') return;
  if (end !== undefined || runsAfter(until + TOLD_WITHIN_MS))
    checkAcquisition(
      book,
      'loss-told',
      end !== undefined,
      one,
      'its time was over, and that was not told',
      one.lastBelieved,
    );
  const endsByTime = end?.event.why === 'expired' || end?.event.why === 'unconfirmed';
  if (!believed.event.renews || !endsByTime || renewal !== undefined) return;
  // A wall clock that is set forward ends a lease at once.
  const jumpedMs = end.event.at - believed.event.at - (end.time - believed.time);
  const middle = believed.time + (until - believed.time) / 2;
  const wasAwake = awakeMs(process, middle, until) > RENEWS_WITHIN_MS;
  if (jumpedMs < RENEWS_WITHIN_MS)
    checkAcquisition(
      book,
      'renewal-sent',
      !wasAwake,
      one,
      'its time was over, and no renewal was sent',
      believed,
      end,
    );
}

/** The call that gives back a lease that ended so; `undefined` where the store ends it by itself. */
function givenBack(
  { abandon, release, transfer, client }: TracedAcquisition,
  why: string,
): { readonly by: PlacedLine | undefined } | undefined {
  switch (why) {
    case 'released':
      return { by: release };
    case 'transferred':
      return { by: transfer };
    case 'unconfirmed':
    case 'closed':
    case 'useless':
      return { by: abandon };
    // A session keeps what its holder has given up (docs/spec.md §4.2).
    case 'expired':
      return client.capabilities.tenure === 'session' ? { by: abandon } : undefined;
    default:
      return undefined;
  }
}
