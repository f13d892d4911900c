import type { LockMode } from '@locks/core/backend';
import type { HoldRecord, LockRecord, WaiterRecord } from '@locks/core/rules';
import type { LockRow } from './lock-row.ts';
import { mustHold } from './malformed-record.ts';

const MODE = /^(?:exclusive|shared|\d+\/\d+)$/;

/** A hold as a row has it. Times that count from the write of the row are left out, or relative (`span`). */
export interface HoldJson {
  readonly id: string;
  readonly mode: string;
  readonly token?: number;
  readonly since?: number;
  readonly until?: number;
  readonly span?: number;
  readonly stolen?: true;
  readonly label?: string;
  /** The id of the write that granted or last renewed the hold, where the table has no clock. */
  readonly mark?: number;
  /** The time of the store's clock by which the hold has ended, where the writer knew that clock. */
  readonly end?: number;
}

/** Waiters that follow one another and differ in their ids only. */
interface WaitersJson {
  readonly mode: string;
  readonly by: string;
  readonly ttl: number;
  readonly since?: number;
  readonly label?: string;
  readonly ids: readonly string[];
}

/**
 * Encodes the state as a row has it; empty where nobody holds and nobody waits.
 *
 * @param timesOf - the times of a hold: {@link timesFromWrite}, unless the table has no clock from whose reading at the write they count
 */
export function encodeState(
  state: Pick<LockRecord, 'holds' | 'waiters'>,
  timesOf: (hold: HoldRecord) => Partial<HoldJson>,
): Buffer {
  return Buffer.from(stateText(state, timesOf));
}

/** The text that {@link encodeState} encodes. */
export function stateText(
  { holds, waiters }: Pick<LockRecord, 'holds' | 'waiters'>,
  timesOf: (hold: HoldRecord) => Partial<HoldJson>,
): string {
  if (holds.length + waiters.length === 0) return '';
  const holdTexts = JSON.stringify(holds.map((hold) => holdJson(hold, timesOf)));
  return `{"holds":${holdTexts},"waiters":[${groupsOf(waiters)}]}`;
}

/** Encodes the state of a resource with one hold. Its token is the one that the row's column gets. */
export function encodeSole(id: string, mode: LockMode, label: string | undefined, span: number): Buffer {
  const hold: HoldJson = { id, mode: modeText(mode), span, label };
  return Buffer.from(JSON.stringify({ holds: [hold], waiters: [] }));
}

/**
 * Decodes what {@link encodeState} made.
 *
 * @param at - the time of the write that made the row
 * @param untilOf - the end of a hold by the table's clock, where that is known: {@link untilFromWrite}, where the times count from the write
 * @throws Error where the text is not such a state
 */
export function decodeState(
  { version, token, at, bytes }: { version: number; token: number; at: number; bytes: Uint8Array },
  untilOf: (hold: HoldJson, at: number) => number | undefined,
): LockRow {
  mustHold(isCount(token) && isCount(version), 'the token or the id of its write is no whole number');
  if (bytes.length === 0) return { version, token, holds: [], waiters: [] };
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  const state = JSON.parse(text) as { holds: HoldJson[]; waiters: WaitersJson[] } | null;
  mustHold(Array.isArray(state?.holds) && Array.isArray(state.waiters), 'it has no holds and waiters');
  for (const hold of state.holds) mustHold(isHold(hold, token), 'a hold is none');
  for (const group of state.waiters) mustHold(areWaiters(group), 'a waiter is none');
  const holds = state.holds.map((json): HoldRecord => {
    const { id, label } = json;
    return {
      id,
      mode: modeOf(json.mode),
      label,
      token: json.token ?? token,
      since: json.since ?? at,
      until: untilOf(json, at),
      span: undefined,
      stolen: json.stolen ?? false,
    };
  });
  const waiters = state.waiters.flatMap(({ ids, mode, by, ttl, since = at, label }) => {
    const shared = { mode: modeOf(mode), label, client: by, ttl, since };
    return ids.map((id): WaiterRecord => ({ id, ...shared }));
  });
  return { version, token, holds, waiters };
}

function isHold(hold: HoldJson | null, lastToken: number): boolean {
  if (hold === null) return false;
  const { id, mode, label, token = 0, since, until, span, mark, end } = hold;
  const times = [since, until, span, mark, end];
  return isEntry(id, mode, label) && isCount(token) && token <= lastToken && times.every(isTimeOrAbsent);
}

function areWaiters(waiters: WaitersJson | null): boolean {
  if (waiters === null) return false;
  const { mode, by, ttl, since, label, ids } = waiters;
  return (
    isEntry(by, mode, label) &&
    Number.isFinite(ttl) &&
    isTimeOrAbsent(since) &&
    Array.isArray(ids) &&
    ids.every((id) => typeof id === 'string')
  );
}

function isEntry(id: unknown, mode: unknown, label: unknown): boolean {
  return (
    typeof id === 'string' &&
    typeof mode === 'string' &&
    MODE.test(mode) &&
    (label === undefined || typeof label === 'string')
  );
}

function isTimeOrAbsent(value: unknown): boolean {
  return value === undefined || Number.isFinite(value);
}

/** Whether a value is a number that can be told from its neighbours. */
function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Makes the JSON of a hold; `JSON.stringify` leaves out undefined fields. */
function holdJson(hold: HoldRecord, timesOf: (hold: HoldRecord) => Partial<HoldJson>): HoldJson {
  const { id, mode, token, since, stolen, label } = hold;
  return { id, mode: modeText(mode), token, since, ...timesOf(hold), stolen: stolen || undefined, label };
}

/** The times of a hold whose lease counts from the time of the write, which the table knows. */
export function timesFromWrite({ until, span }: HoldRecord): Partial<HoldJson> {
  return span === undefined ? { until } : { span };
}

/** The end of a hold with the times of {@link timesFromWrite}, in a row that was written at `at`. */
export function untilFromWrite({ until, span = 0 }: HoldJson, at: number): number {
  return until ?? at + span;
}

/** Makes the texts of the groups, without `JSON.stringify`, since every hand-off in a long queue does it again. */
function groupsOf(waiters: readonly WaiterRecord[]): string[] {
  const groups: string[] = [];
  let ids: string[] = [];
  for (const [index, waiter] of waiters.entries()) {
    ids.push(waiter.id);
    const next = waiters[index + 1];
    if (next !== undefined && areAlike(waiter, next)) continue;
    groups.push(groupText(waiter, ids));
    ids = [];
  }
  return groups;
}

/**
 * Makes the text of one group. The ids come last: the text behind the first change is not written again. No character of an id
 * needs an escape in JSON (`AcquireRequest`).
 */
function groupText({ mode, client, ttl, since, label }: WaiterRecord, ids: readonly string[]): string {
  const shared: Omit<WaitersJson, 'ids'> = {
    mode: modeText(mode),
    by: client,
    ttl,
    since,
    label,
  };
  return `${JSON.stringify(shared).slice(0, -1)},"ids":["${ids.join('","')}"]}`;
}

/** Whether two waiters that follow one another are written as one group. */
export function areAlike(a: WaiterRecord, b: WaiterRecord): boolean {
  return (
    a.since === b.since &&
    a.client === b.client &&
    a.ttl === b.ttl &&
    a.label === b.label &&
    (a.mode === b.mode || modeText(a.mode) === modeText(b.mode))
  );
}

function modeText(mode: LockMode): string {
  return mode.kind === 'permit' ? `${mode.weight}/${mode.limit}` : mode.kind;
}

function modeOf(text: string): LockMode {
  if (text === 'exclusive' || text === 'shared') return { kind: text };
  const [weight, limit] = text.split('/');
  return { kind: 'permit', limit: Number(limit), weight: Number(weight) };
}
