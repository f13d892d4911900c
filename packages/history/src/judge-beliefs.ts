import type { HistoryMode } from './history-event.ts';
import type { HistoryOperation } from './history-operation.ts';
import { type CertainHold, type HistoryViolationKind, Narrator } from './history-verdict.ts';
import { judgeResource } from './judge-resource.ts';
import type { RuleBook, TracePlace, TraceRule } from './trace-rules.ts';
import {
  awakeMs,
  believedUntil,
  type PlacedLine,
  type TracedAcquisition,
  type TracedResource,
} from './traced-acquisition.ts';

/** A time in which a store lost data. */
export interface DataLoss {
  readonly from: number;
  readonly until: number;
}

export interface BeliefOptions {
  readonly startedAt: number;
  /** How far apart the clocks of the machines may be, in milliseconds. */
  readonly skewMs: number;
  /** For how long a resource may be idle while somebody waits, in milliseconds. */
  readonly idleMs: number;
  readonly losses: readonly DataLoss[];
}

const RULES: Partial<Record<HistoryViolationKind, TraceRule>> = {
  exclusion: 'exclusion',
  capacity: 'permits',
  limit: 'permits',
  'token-order': 'token-order',
};
/** A process that runs tells the end of a lease by time within this time. */
const TOLD_WITHIN_MS = 20;
const AWAKE_MS = 20;

interface Belief {
  readonly one: TracedAcquisition;
  readonly first: PlacedLine;
  readonly from: number;
  /** Whoever holds counts on it until then, for certain. */
  readonly until: number;
}

/** Holds the beliefs of all clients in one resource to the rules that concern several acquisitions. */
export function judgeBeliefs(resource: TracedResource, book: RuleBook, options: BeliefOptions): number {
  const beliefs: Belief[] = [];
  const tokens = new Map<string, TracedAcquisition>();
  for (const one of resource.acquisitions.values()) {
    judgeOwnToken(one, tokens, resource, book, options);
    judgeExplained(one, resource, book, options);
    const belief = beliefOf(one, resource, options);
    if (belief !== undefined) beliefs.push(belief);
  }
  beliefs.sort((a, b) => a.from - b.from);
  judgeToldFirst(beliefs, resource, book);
  judgeTogether(beliefs, resource, book, options);
  return beliefs.length;
}

function isInLoss(time: number, { losses }: BeliefOptions): boolean {
  return losses.some(({ from, until }) => from <= time && time <= until);
}

/** What is certain of a belief: nothing of what an operator, a thief or a loss of data may have ended. */
function beliefOf(
  one: TracedAcquisition,
  { takenAway }: TracedResource,
  options: BeliefOptions,
): Belief | undefined {
  const { believed: first, sent, id } = one;
  if (first === undefined || isInLoss(first.time, options)) return undefined;
  // The line that tells its end may be one of those that are missing.
  if (one.process.isIncomplete && one.end === undefined) return undefined;
  // A loss of data ends what was granted before it, and perhaps delivered after it.
  const askedAt = sent?.time ?? first.time;
  const { losses } = options;
  if (losses.some(({ from, until }) => askedAt <= until && from <= first.time)) return undefined;
  let until = believedUntil(one) - options.skewMs;
  for (const { from } of losses) if (from > first.time) until = Math.min(until, from);
  for (const taken of takenAway) {
    if (taken.by === id || (taken.id !== undefined && taken.id !== id)) continue;
    // An acquire that was under way may have been granted before it.
    if (taken.until >= askedAt && taken.from <= until)
      until = Math.min(until, Math.max(taken.from, first.time));
    if (taken.until >= first.time && taken.from <= first.time) return undefined;
  }
  return until > first.time ? { one, first, from: first.time, until } : undefined;
}

function judgeOwnToken(
  one: TracedAcquisition,
  tokens: Map<string, TracedAcquisition>,
  { name }: TracedResource,
  book: RuleBook,
  options: BeliefOptions,
): void {
  const { token, granted } = one;
  if (token === undefined || granted === undefined || isInLoss(granted.time, options)) return;
  const other = tokens.get(token);
  tokens.set(token, one);
  book.check('token-own', other === undefined, name, () => [
    `${whose(one)} and ${other === undefined ? '' : whose(other)} were granted ${JSON.stringify(name)} with the token ${token}.`,
    other?.granted,
    granted,
  ]);
}

/** A lease is lost before its time only where somebody takes it (docs/spec.md §3.1, §8.3). */
function judgeExplained(
  one: TracedAcquisition,
  { name, takenAway }: TracedResource,
  book: RuleBook,
  options: BeliefOptions,
): void {
  const { end, sent, believed, id, isWhole, hasOtherTtls, notHeld, releases } = one;
  if (end === undefined || believed === undefined || !isWhole || hasOtherTtls) return;
  const { why } = end.event;
  const isLost = why === 'taken-over' || why === 'force-released';
  // Of a release that was sent again, the first one may have ended the hold.
  const found = isLost ? end : releases === 1 ? notHeld : undefined;
  if (found === undefined || found.time >= endsByItself(one)) return;
  const since = sent?.time ?? believed.time;
  const isTaken = takenAway.some(
    (taken) => taken.by !== id && (taken.id ?? id) === id && taken.from <= found.time && taken.until >= since,
  );
  const hasLostData = options.losses.some(({ from, until }) => from <= found.time && until >= since);
  book.check('loss-explained', isTaken || hasLostData, name, () => [
    `${whose(one)} lost ${JSON.stringify(name)} before its time, as ${isLost ? why : 'its release found'}, and nobody took it.`,
    believed,
    found,
  ]);
}

/** The end of a lease by its time is told before the next one enters, by a process that runs (docs/spec.md §8.2). */
function judgeToldFirst(beliefs: readonly Belief[], { name }: TracedResource, book: RuleBook): void {
  let open: Belief[] = [];
  for (const belief of beliefs) {
    open = open.filter(({ one: { end } }) => end === undefined || end.time > belief.from);
    for (const before of open) {
      const over = endsByItself(before.one);
      if (over > belief.from || !excludes(before.one.mode, belief.one.mode)) continue;
      const { process, client } = before.one;
      if (client.capabilities.tenure === 'session' || process.isIncomplete) continue;
      const isSame = process === belief.one.process;
      const wasAwake = awakeMs(process, over + TOLD_WITHIN_MS, belief.from) > AWAKE_MS;
      // A process that stood still tells it later, but before another acquisition of the same process holds.
      book.check('loss-told-first', !isSame && !wasAwake, name, () => [
        `${whose(belief.one)} entered ${JSON.stringify(name)} before ${whose(before.one)} was told that its time was over.`,
        before.one.lastBelieved,
        belief.first,
      ]);
    }
    book.count('loss-told-first');
    open.push(belief);
  }
}

function judgeTogether(
  beliefs: readonly Belief[],
  { name, limits }: TracedResource,
  book: RuleBook,
  options: BeliefOptions,
): void {
  const places = new Map<HistoryOperation, readonly TracePlace[]>();
  const mostPermits = Math.max(0, ...limits);
  const holds: CertainHold[] = [];
  for (const { one, first, from, until } of beliefs) {
    const { downgrade, token, mode } = one;
    const granted =
      mode.kind === 'permit' && limits.length > 0
        ? { ...mode, limit: Math.max(mode.limit, mostPermits) }
        : mode;
    const entry = operationOf(one, granted, first);
    places.set(
      entry,
      [one.granted, first].filter((line) => line !== undefined),
    );
    const hold = {
      entry,
      mode: granted,
      token: token === undefined ? undefined : BigInt(token),
      from,
      release: undefined,
    };
    // From the moment in which a downgrade is asked for, its holder may count on a share only.
    const exclusiveUntil = downgrade === undefined ? until : Math.min(until, Math.max(from, downgrade.time));
    holds.push({ ...hold, until: exclusiveUntil });
    if (exclusiveUntil < until)
      holds.push({ ...hold, mode: { kind: 'shared' }, token: undefined, from: exclusiveUntil, until });
  }
  book.count('exclusion', holds.length);
  book.count('permits', holds.filter(({ mode }) => mode.kind === 'permit').length);
  book.count('token-order', holds.filter(({ token }) => token !== undefined).length);
  const { violations, longestIdleMs } = judgeResource(name, holds, new Narrator(options.startedAt));
  for (const { kind, sentence, operations } of violations) {
    const lines = operations.flatMap((operation) => places.get(operation) ?? []);
    book.check(RULES[kind] ?? 'exclusion', false, name, () => [sentence, ...lines]);
  }
  if (options.idleMs < Number.POSITIVE_INFINITY)
    book.check('idle', longestIdleMs <= options.idleMs, name, () => [
      `Nobody held ${JSON.stringify(name)} for ${Math.round(longestIdleMs)} ms while somebody waited.`,
    ]);
}

function operationOf(one: TracedAcquisition, mode: HistoryMode, first: PlacedLine): HistoryOperation {
  const { process, id, name, token, sent } = one;
  return {
    operation: 'acquire',
    process: process.name,
    id: first.line,
    resource: name,
    acquisitionId: id,
    mode,
    token: token === undefined ? undefined : BigInt(token),
    invokedAt: sent?.time ?? first.time,
    completedAt: first.time,
    outcome: 'ok',
  };
}

/** When the time of a lease is over, unless something ends it before. */
function endsByItself({ lastBelieved }: TracedAcquisition): number {
  if (lastBelieved?.event.endsAt === undefined) return Number.POSITIVE_INFINITY;
  return lastBelieved.event.endsAt + lastBelieved.time - lastBelieved.event.time;
}

function excludes(a: HistoryMode, b: HistoryMode): boolean {
  return a.kind === 'exclusive' || a.kind !== b.kind;
}

function whose({ process, id }: TracedAcquisition): string {
  return `${process.name}'s acquisition ${JSON.stringify(id)}`;
}
