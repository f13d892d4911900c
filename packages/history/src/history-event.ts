import { HistoryError, type HistoryPosition, show } from './history-error.ts';

/** How an acquisition takes part in a resource; the same shape as `LockMode` of `@locks/core`. */
export type HistoryMode =
  | { readonly kind: 'exclusive' }
  | { readonly kind: 'shared' }
  | {
      readonly kind: 'permit';
      /** How many permits the acquisition takes. */
      readonly weight: number;
      /** How many permits the resource has. */
      readonly limit: number;
    };

/**
 * `invoke`: a call begins. `ok`: it did what it was asked for. `fail`: it certainly did not. `info`: nobody knows, or something that
 * no call asked for happened.
 */
export type HistoryEventType = 'invoke' | 'ok' | 'fail' | 'info';

/** `acquire` and `release` are calls; `loss` and `crash` are single events of type `info`. */
export type HistoryAction = 'acquire' | 'release' | 'loss' | 'crash';

/** A line of a history: `docs/histories.md` of the repository has the format. */
export interface HistoryEvent {
  /** Whether a call began, or what came of it. */
  readonly type: HistoryEventType;
  /** What was done, or happened. */
  readonly operation: HistoryAction;
  /** Who calls: a process, a thread, a task. Its calls may overlap. */
  readonly process: string;
  /** Milliseconds on a clock that all processes of the history share. */
  readonly time: number;
  /** Tells the calls of a process apart: the outcome of a call has the number of its `invoke`. */
  readonly id?: number;
  /** The name of the lock: with every event but `crash`. */
  readonly resource?: string;
  /** With `invoke` of an acquire if it is known then; with every other event of an acquisition. */
  readonly acquisitionId?: string;
  /** With `invoke` of an acquire. Absent: exclusive. */
  readonly mode?: HistoryMode;
  /** With `ok` of an acquire: the fencing token in decimal digits. */
  readonly token?: string;
  /** With `loss`: when the holder took its lease for ended, if that was before it could note the loss. */
  readonly endedAt?: number;
  /** With `fail` and `info`, for those who read the history. */
  readonly error?: string;
}

export const EXCLUSIVE: HistoryMode = Object.freeze({ kind: 'exclusive' });

const TYPES: ReadonlySet<unknown> = new Set(['invoke', 'ok', 'fail', 'info']);
const ACTIONS: ReadonlySet<unknown> = new Set(['acquire', 'release', 'loss', 'crash']);
const KEYS = 'type operation process time id resource acquisitionId mode token endedAt error'.split(' ');
const KNOWN: ReadonlySet<string> = new Set(KEYS);

/** Checks one event by itself. */
export function checkEvent(value: unknown, position: HistoryPosition): HistoryEvent {
  const refuse = (problem: string): never => {
    throw new HistoryError(problem, position);
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(`an event must be an object, not ${show(value)}.`);
  const event = value as HistoryEvent;
  for (const key in event)
    if (!KNOWN.has(key)) refuse(`an event has no property ${show(key)}. It has ${KEYS.join(', ')}.`);
  const must = (name: keyof HistoryEvent, allowed: string): never =>
    refuse(`${name} must be ${allowed}, not ${show(event[name])}.`);
  const isText = (given: unknown): boolean => typeof given === 'string' && given !== '';

  if (!TYPES.has(event.type)) must('type', 'invoke, ok, fail or info');
  if (!ACTIONS.has(event.operation)) must('operation', 'acquire, release, loss or crash');
  if (!isText(event.process)) must('process', 'a text');
  if (!Number.isFinite(event.time)) must('time', 'a number of milliseconds');
  if (event.operation === 'loss' || event.operation === 'crash') {
    if (event.type !== 'info') must('type', `info for ${event.operation}`);
  } else if (!Number.isSafeInteger(event.id)) must('id', 'a whole number');
  if (event.operation !== 'crash' && !isText(event.resource)) must('resource', 'a text');

  const { acquisitionId, mode, token, endedAt } = event;
  const isOptional = event.operation === 'crash' || (event.operation === 'acquire' && event.type !== 'ok');
  if (!(acquisitionId === undefined && isOptional) && !isText(acquisitionId)) must('acquisitionId', 'a text');
  if (mode !== undefined && !isMode(mode))
    must('mode', '{"kind":"exclusive"}, {"kind":"shared"} or {"kind":"permit","weight":1,"limit":1}');
  if (token !== undefined && (typeof token !== 'string' || !/^\d+$/.test(token)))
    must('token', 'a text of decimal digits');
  if (endedAt !== undefined && !(Number.isFinite(endedAt) && endedAt <= event.time))
    must('endedAt', 'a number of milliseconds, not after time');
  return event;
}

export function isMode(value: unknown): value is HistoryMode {
  if (typeof value !== 'object' || value === null) return false;
  const mode = value as Partial<Record<'kind' | 'weight' | 'limit', unknown>>;
  if (mode.kind !== 'permit') return mode.kind === 'exclusive' || mode.kind === 'shared';
  return isCount(mode.weight) && isCount(mode.limit) && mode.weight <= mode.limit;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
