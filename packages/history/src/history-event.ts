import { HistoryError, type HistoryPosition, show } from './history-error.ts';

/** The mode of an acquisition: how it takes part in a resource. The shape is that of `LockMode` of `@locks/core`. */
export type HistoryMode =
  | { readonly kind: 'exclusive' }
  | { readonly kind: 'shared' }
  | {
      readonly kind: 'permit';
      /** The number of permits that the acquisition takes. */
      readonly weight: number;
      /** The number of permits that the resource has. */
      readonly limit: number;
    };

/**
 * The type of an event. `invoke`: a call begins. `ok`: the call succeeded. `fail`: the call certainly did not succeed. `info`:
 * the outcome of the call is unknown, or something happened that no call asked for.
 */
export type HistoryEventType = 'invoke' | 'ok' | 'fail' | 'info';

/** `acquire` and `release` are calls; `loss` and `crash` are single events of type `info`. */
export type HistoryAction = 'acquire' | 'release' | 'loss' | 'crash';

/** A line of a history: `docs/histories.md` of the repository has the format. */
export interface HistoryEvent {
  /** The type of the event: the beginning of a call, or its outcome. */
  readonly type: HistoryEventType;
  /** The call that was made, or the event that happened. */
  readonly operation: HistoryAction;
  /** The caller: a process, a thread, a task. Its calls may overlap. */
  readonly process: string;
  /** Milliseconds on a clock that all processes of the history share. */
  readonly time: number;
  /** Tells the calls of a process apart: the outcome of a call has the number of its `invoke`. */
  readonly id?: number;
  /** The name of the lock: with every event but `crash`. */
  readonly resource?: string;
  /**
   * The id of the acquisition: with `invoke` of an acquire if it is known then, and with every other event of an acquisition.
   */
  readonly acquisitionId?: string;
  /** The mode, with `invoke` of an acquire. Absent: exclusive. */
  readonly mode?: HistoryMode;
  /** The fencing token in decimal digits, with `ok` of an acquire. */
  readonly token?: string;
  /** The time at which the holder took its lease for ended, with `loss`, if that was before it could note the loss. */
  readonly endedAt?: number;
  /** The error for readers of the history, with `fail` and `info`. */
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
