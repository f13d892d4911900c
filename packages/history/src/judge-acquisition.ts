import type { CertainHold, HistoryViolation, HistoryViolationKind, Narrator } from './history-verdict.ts';
import type { HistoryOperation, RecordedAcquisition } from './history-operation.ts';

/** The promises that a lock has to keep beside exclusion, ownership and rising tokens. */
export interface Expectations {
  readonly fenced: boolean;
  readonly reentrant: boolean;
}

export interface JudgedAcquisition {
  /** The time of the certain hold; `undefined` where the acquisition never certainly held. */
  readonly hold: CertainHold | undefined;
  readonly violations: readonly HistoryViolation[];
}

/** Judges one acquisition by itself: its owner, entries, token and releases. Gives its certain hold too. */
export function judgeAcquisition(
  acquisition: RecordedAcquisition,
  crashes: ReadonlyMap<string, number>,
  expected: Expectations,
  narrator: Narrator,
): JudgedAcquisition {
  const { resource, entries } = acquisition;
  const violations: HistoryViolation[] = [];
  const accuse = (
    kind: HistoryViolationKind,
    operations: readonly HistoryOperation[],
    what: string,
  ): void => {
    violations.push({
      kind,
      resource,
      sentence: `${what} (resource ${JSON.stringify(resource)}).`,
      operations,
    });
  };
  const owned = ofOwner(acquisition);
  const judged = { acquisition: owned, expected, narrator, accuse };
  judgeReleases(judged);
  judgeOwner(judged);
  const [first] = entries;
  if (first === undefined) return { hold: undefined, violations };
  if (entries.length > 1) judgeEntries(judged, first);
  if (entries.length + owned.unknownEntries.length > 1 || owned.loss !== undefined) judgeReuse(judged, first);
  if (expected.fenced && first.token === undefined)
    accuse('token-missing', [first], `${narrator.name(first)} was granted without a fencing token`);
  return { hold: certainHold(owned, first, crashes), violations };
}

/** The process that was told first that it holds, or else the first that asked. */
function ownerOf({ entries, unknownEntries }: RecordedAcquisition): HistoryOperation | undefined {
  return entries[0] ?? [...unknownEntries].sort(byInvocation)[0];
}

/**
 * Leaves out the calls of other processes whose outcome nobody knows. Had one of them entered or ended the hold, the lock would have broken
 * the promise to its owner: a call like that must not excuse a second holder.
 */
function ofOwner(acquisition: RecordedAcquisition): RecordedAcquisition {
  const owner = ownerOf(acquisition)?.process;
  const counts = ({ process, outcome }: HistoryOperation) => process === owner || outcome === 'ok';
  const { unknownEntries, releases } = acquisition;
  if (owner === undefined || (unknownEntries.every(counts) && releases.every(counts))) return acquisition;
  return {
    ...acquisition,
    unknownEntries: unknownEntries.filter(counts),
    releases: releases.filter(counts),
  };
}

interface Judged {
  readonly acquisition: RecordedAcquisition;
  readonly expected: Expectations;
  readonly narrator: Narrator;
  readonly accuse: (
    kind: HistoryViolationKind,
    operations: readonly HistoryOperation[],
    what: string,
  ) => void;
}

/** Checks that every successful release has an acquire of its own, which began before the release was over. */
function judgeReleases({ acquisition, narrator, accuse }: Judged): void {
  const { entries, unknownEntries, releases, loss } = acquisition;
  const succeeded = releases.filter(({ outcome }) => outcome === 'ok').sort(byCompletion);
  if (succeeded.length === 0) return;
  const acquires = [...entries, ...unknownEntries].sort(byInvocation);
  for (const [index, release] of succeeded.entries()) {
    const acquire = acquires[index];
    if (acquire !== undefined && acquire.invokedAt < completion(release)) continue;
    const what = `${release.process} was told at ${narrator.at(completion(release))} that it released acquisition ${JSON.stringify(release.acquisitionId)}, which did not hold`;
    accuse('release', [...acquires.slice(0, 1), ...succeeded.slice(0, index + 1)].slice(0, 12), what);
    return;
  }
  const late = loss && succeeded.find(({ invokedAt }) => invokedAt > loss.notedAt);
  if (loss === undefined || late === undefined) return;
  const what = `${late.process} was told at ${narrator.at(completion(late))} that it released acquisition ${JSON.stringify(late.acquisitionId)}, whose loss it had noted at ${narrator.at(loss.notedAt)}`;
  accuse('release', [...entries.slice(0, 1), late], what);
}

/** Checks that only the owner enters again and releases. */
function judgeOwner({ acquisition, narrator, accuse }: Judged): void {
  const { entries, releases } = acquisition;
  const first = ownerOf(acquisition);
  if (first === undefined) return;
  const isStranger = ({ process, outcome }: HistoryOperation) =>
    process !== first.process && outcome === 'ok';
  const stranger = entries.find(isStranger) ?? releases.find(isStranger);
  if (stranger === undefined) return;
  const did = stranger.operation === 'release' ? 'released' : 'entered';
  const what = `${stranger.process} ${did} ${narrator.name(first)} at ${narrator.at(completion(stranger))}, which belongs to ${first.process}`;
  accuse('owner', [first, stranger], what);
}

function judgeEntries({ acquisition, expected, narrator, accuse }: Judged, first: HistoryOperation): void {
  const { entries } = acquisition;
  const second = entries[1] as HistoryOperation;
  if (!expected.reentrant) {
    const what = `${narrator.name(first)} was granted a second time at ${narrator.at(completion(second))}, and the lock is not reentrant`;
    accuse('reentry', [first, second], what);
  }
  const other = entries.find(({ token }) => token !== first.token);
  if (other !== undefined) {
    const what = `${narrator.name(first)} entered again at ${narrator.at(completion(other))} with ${other.token === undefined ? 'no token' : `token ${other.token}`}`;
    accuse('token-change', [first, other], what);
  }
  const changed = entries.find(
    ({ mode }) => first.mode.kind !== 'exclusive' && mode.kind !== first.mode.kind,
  );
  if (changed !== undefined) {
    const what = `${narrator.name(first)} entered again at ${narrator.at(completion(changed))} in mode ${changed.mode.kind}`;
    accuse('mode-change', [first, changed], what);
  }
}

/** Checks that no acquire succeeds that began after the loss, or when as many releases were over as acquires had begun. */
function judgeReuse({ acquisition, narrator, accuse }: Judged, first: HistoryOperation): void {
  const { entries, unknownEntries, releases, loss } = acquisition;
  const begun = [...entries, ...unknownEntries].sort(byInvocation);
  const released = releases.filter(({ outcome }) => outcome === 'ok').sort(byCompletion);
  let over = 0;
  for (const [index, acquire] of begun.entries()) {
    while (over < released.length && completion(released[over] as HistoryOperation) < acquire.invokedAt)
      over += 1;
    const hasEnded = (index > 0 && over >= index) || (loss !== undefined && acquire.invokedAt > loss.notedAt);
    if (!hasEnded || acquire.outcome !== 'ok') continue;
    const what = `${narrator.name(first)} was granted at ${narrator.at(completion(acquire))} after its hold had ended`;
    accuse('reuse', first === acquire ? [first] : [first, acquire], what);
    return;
  }
}

/**
 * The shortest time that the acquisition can have held: an acquire counts from its outcome, a release from its beginning, also one
 * without an outcome. A hold that is entered several times ends with as many releases.
 */
function certainHold(
  { entries, releases, loss }: RecordedAcquisition,
  first: HistoryOperation,
  crashes: ReadonlyMap<string, number>,
): CertainHold {
  const last =
    releases.length > 1 ? [...releases].sort(byInvocation)[entries.length - 1] : releases[entries.length - 1];
  // A hold that is entered again after its last release began was released after that.
  const released =
    last === undefined
      ? Number.POSITIVE_INFINITY
      : entries.reduce((end, { invokedAt }) => Math.max(end, invokedAt), last.invokedAt);
  const lost = loss?.endedAt ?? Number.POSITIVE_INFINITY;
  const crashed = crashes.get(first.process) ?? Number.POSITIVE_INFINITY;
  const until = Math.min(released, lost, crashed);
  return {
    entry: first,
    mode: first.mode,
    token: first.token,
    from: completion(first),
    until,
    release: until === released ? last : undefined,
  };
}

function completion({ completedAt }: HistoryOperation): number {
  return completedAt ?? Number.POSITIVE_INFINITY;
}

function byInvocation(one: HistoryOperation, other: HistoryOperation): number {
  return one.invokedAt - other.invokedAt;
}

function byCompletion(one: HistoryOperation, other: HistoryOperation): number {
  return completion(one) - completion(other);
}
