import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LockMode } from '@locks/core/backend';
import { checkHistory, type HistoryEvent, type HistoryVerdict, readHistory } from '@locks/history';
import type { Fact } from '../worker/worker-commands.ts';

export type WaitFact = Extract<Fact, { kind: 'wait' }> & { readonly worker: string };

export interface Span {
  readonly from: number;
  readonly until: number;
}

/** A hold as its holder saw it. */
export interface ObservedHold extends Span {
  readonly worker: string;
  readonly resource: string;
  readonly acquisitionId: string;
  readonly mode: LockMode;
  readonly hasToken: boolean;
  readonly askedAt: number;
  /** How it ended, as far as its holder knew. */
  readonly end: 'released' | 'lost' | 'crashed' | 'open';
}

/** An acquire that its worker was killed in: it may wait on in the store, until that takes its client for dead. */
export interface DeadWait {
  readonly worker: string;
  readonly resource: string;
  readonly askedAt: number;
}

/** What the workers of a run have written down. */
export interface RunRecord {
  readonly verdict: HistoryVerdict;
  /** In the order in which they were granted. */
  readonly holds: readonly ObservedHold[];
  readonly waits: readonly WaitFact[];
  readonly stalls: ReadonlyMap<string, readonly Span[]>;
  readonly crashes: ReadonlyMap<string, number>;
  /** The acquires that workers were killed in. */
  readonly deadWaits: readonly DeadWait[];
  /** Why holds were lost, by resource and acquisition id. */
  readonly lossReasons: ReadonlyMap<string, string>;
}

export function readRun(folder: string, isFenced: boolean): RunRecord {
  const files = readdirSync(folder)
    .filter((file) => file.startsWith('history '))
    .map((file) => join(folder, file));
  const events = files.length === 0 ? [] : [...readHistory(...files.sort())];
  const verdict = checkHistory(events, ...(isFenced ? (['fenced'] as const) : []));
  return { verdict, ...holdsOf(events), ...factsIn(folder) };
}

type OpenHold = { -readonly [K in keyof ObservedHold]: ObservedHold[K] };

function holdsOf(events: readonly HistoryEvent[]): Pick<RunRecord, 'holds' | 'crashes' | 'deadWaits'> {
  const asked = new Map<string, HistoryEvent>();
  const holds = new Map<string, OpenHold>();
  const crashes = new Map<string, number>();
  for (const event of events) {
    const { operation, type, process: worker, time, id, resource = '', acquisitionId = '' } = event;
    const hold = holds.get(`${resource} ${acquisitionId}`);
    if (operation === 'crash') crashes.set(worker, time);
    else if (operation === 'loss') endAt(hold, event.endedAt ?? time, 'lost');
    else if (operation === 'release' && type === 'invoke') endAt(hold, time, 'released');
    else if (operation === 'acquire' && type === 'invoke') asked.set(`${worker} ${id}`, event);
    else if (operation === 'acquire' && type === 'ok') {
      const { time: askedAt = time, mode = { kind: 'exclusive' } } = asked.get(`${worker} ${id}`) ?? {};
      holds.set(`${resource} ${acquisitionId}`, {
        ...{ worker, resource, acquisitionId, mode, askedAt, from: time },
        ...{ hasToken: event.token !== undefined, until: Number.POSITIVE_INFINITY, end: 'open' },
      });
    }
    if (operation === 'acquire' && type !== 'invoke') asked.delete(`${worker} ${id}`);
  }
  for (const hold of holds.values()) endAt(hold, crashes.get(hold.worker), 'crashed');
  const deadWaits = [...asked.values()].flatMap(({ process: worker, resource = '', time: askedAt }) =>
    crashes.has(worker) ? [{ worker, resource, askedAt }] : [],
  );
  return { holds: [...holds.values()].sort((a, b) => a.from - b.from), crashes, deadWaits };
}

/** Ends a hold, unless it had ended before. A loss is noted before the outcome of the release that tells of it. */
function endAt(hold: OpenHold | undefined, time: number | undefined, end: ObservedHold['end']): void {
  if (hold === undefined || time === undefined) return;
  if (hold.end !== 'open' && !(end === 'lost' && time < hold.until)) return;
  hold.until = time;
  hold.end = end;
}

function factsIn(folder: string): Pick<RunRecord, 'waits' | 'stalls' | 'lossReasons'> {
  const lossReasons = new Map<string, string>();
  const waits: WaitFact[] = [];
  const stalls = new Map<string, Span[]>();
  for (const file of readdirSync(folder).filter((one) => one.startsWith('facts '))) {
    const worker = file.slice('facts '.length, -'.jsonl'.length);
    const own: Span[] = [];
    stalls.set(worker, own);
    // The last line of a worker that was killed may be incomplete.
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n').slice(0, -1)) {
      const fact = JSON.parse(line) as Fact;
      if (fact.kind === 'stall') own.push(fact);
      else if (fact.kind === 'loss') lossReasons.set(`${fact.resource} ${fact.acquisitionId}`, fact.reason);
      else waits.push({ ...fact, worker });
    }
  }
  return { waits: waits.sort((a, b) => a.askedAt - b.askedAt), stalls, lossReasons };
}
