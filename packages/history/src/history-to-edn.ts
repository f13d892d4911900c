import { collectHistory } from './collect-history.ts';
import { EXCLUSIVE, type HistoryEvent, type HistoryMode } from './history-event.ts';
import type { RecordedAcquisition } from './history-operation.ts';

/** A call as Jepsen knows it, with what its value says at its beginning and at its end. */
interface EdnCall {
  readonly f: 'acquire' | 'release';
  readonly value: Readonly<Record<string, string | undefined>>;
}

interface EdnEvent {
  readonly time: number;
  readonly type: HistoryEvent['type'];
  readonly call: EdnCall;
  readonly value: EdnCall['value'];
  readonly error?: string | undefined;
}

const NANOSECONDS = 1e6;
const HIGHEST_LONG = 2n ** 63n - 1n;

// setup: import { writeFileSync } from 'node:fs';
// setup: import { historyToEdn, readHistory } from '@locks/history';
/**
 * A history in the EDN of Jepsen, for other checkers: each line is a map with `:index`, `:time`, `:type`, `:process`, `:f` and `:value`.
 * A process of the history becomes the `:client` of the value. A `:process` makes one call at a time, and none after a call with an
 * unknown outcome. The end of a lease is written as a release with a `:cause`: `docs/histories.md` of the repository has the rules.
 *
 * @param events - of `readHistory()`, of `parseHistory()`, or a list
 * @returns the lines in the order of their times, each with its line feed
 * @throws HistoryError `LOCK_INVALID_ARGUMENT` with the `line` for a malformed history, before the first line
 * @example
 * ```ts
 * writeFileSync('history.edn', [...historyToEdn(readHistory('worker-1.jsonl', 'worker-2.jsonl'))].join(''));
 * ```
 */
export function* historyToEdn(events: Iterable<HistoryEvent>): Generator<string> {
  const all = [...events];
  const { resources, crashes } = collectHistory(all);
  const written = [...callsOf(all)];
  for (const acquisitions of resources.values())
    for (const acquisition of acquisitions.values()) written.push(...endOf(acquisition, crashes));
  // Of events at one time, the beginnings stand first: their calls overlap.
  written.sort((a, b) => a.time - b.time || Number(b.type === 'invoke') - Number(a.type === 'invoke'));

  const processes = new Map<EdnCall, number>();
  const free: number[] = [];
  let started = 0;
  const startedAt = written[0]?.time ?? 0;
  for (const [index, { time, type, call, value, error }] of written.entries()) {
    const process = processes.get(call) ?? free.pop() ?? (started += 1) - 1;
    if (type === 'invoke') processes.set(call, process);
    else if (type !== 'info') free.push(process);
    yield `${toMap({
      index: String(index),
      time: String(Math.round((time - startedAt) * NANOSECONDS)),
      type: `:${type}`,
      process: String(process),
      f: `:${call.f}`,
      value: toMap(value),
      error: error === undefined ? undefined : JSON.stringify(error),
    })}\n`;
  }
}

function* callsOf(events: readonly HistoryEvent[]): Generator<EdnEvent> {
  const pending = new Map<string, EdnCall>();
  for (const { operation, type, time, process, id, resource, acquisitionId, mode, token, error } of events) {
    if (operation === 'loss' || operation === 'crash') continue;
    const key = JSON.stringify([process, id]);
    const begun = type === 'invoke' ? undefined : pending.get(key);
    const value = {
      lock: JSON.stringify(resource),
      client: JSON.stringify(process),
      ...(begun?.value ?? (operation === 'acquire' ? modeToEdn(mode) : {})),
      ...(acquisitionId !== undefined && { uid: JSON.stringify(acquisitionId) }),
      ...(token !== undefined && {
        fence: BigInt(token) > HIGHEST_LONG ? `${BigInt(token)}N` : `${BigInt(token)}`,
      }),
    };
    const call = begun ?? { f: operation, value };
    pending.set(key, call);
    yield { time, type, call, value, error };
  }
}

/**
 * The end of a lease that no release reported. Its outcome is unknown after a crash, where the store ends the lease later, and where the
 * acquire has no known outcome, or a release had begun.
 */
function* endOf(
  { acquisitionId, resource, entries, unknownEntries, releases, loss }: RecordedAcquisition,
  crashes: ReadonlyMap<string, number>,
): Generator<EdnEvent> {
  const entry = entries[0] ?? unknownEntries[0];
  if (entry === undefined) return;
  const crashedAt = crashes.get(entry.process);
  const released = releases.filter(({ outcome }) => outcome === 'ok').length;
  if (loss === undefined && (crashedAt === undefined || released >= entries.length)) return;
  const isCertain =
    loss !== undefined &&
    entry.outcome === 'ok' &&
    releases.every(({ invokedAt }) => invokedAt > loss.notedAt);
  const { endedAt, notedAt } = loss ?? { endedAt: crashedAt as number, notedAt: crashedAt as number };
  const value = {
    lock: JSON.stringify(resource),
    client: JSON.stringify(entry.process),
    uid: JSON.stringify(acquisitionId),
    cause: loss === undefined ? ':crash' : ':loss',
  };
  const call: EdnCall = { f: 'release', value };
  yield { time: endedAt, type: 'invoke', call, value };
  yield { time: notedAt, type: isCertain ? 'ok' : 'info', call, value };
}

function modeToEdn(mode: HistoryMode = EXCLUSIVE): EdnCall['value'] {
  return {
    mode: `:${mode.kind}`,
    ...(mode.kind === 'permit' && { weight: String(mode.weight), limit: String(mode.limit) }),
  };
}

function toMap(entries: Readonly<Record<string, string | undefined>>): string {
  const written = Object.entries(entries).filter(([, value]) => value !== undefined);
  return `{${written.map(([key, value]) => `:${key} ${value}`).join(', ')}}`;
}
