import type { LockMode } from '@locks/core/backend';
import type { HoldRecord, LockRecord, WaiterRecord } from '@locks/core/rules';

/** The holds and waiters of a resource, as its row says. Times are microseconds of the server's clock since 1970. */
export interface LockRow extends LockRecord {
  /** The version for compare and swap: it changes with every write and never comes back. 0: there is no row. */
  readonly version: number;
  /** The encoded state, as it stands in the row; `undefined` if that is not known. */
  readonly bytes?: Buffer;
}

interface HoldJson {
  readonly id: string;
  readonly mode: string;
  readonly token?: number;
  readonly since?: number;
  readonly until?: number;
  readonly span?: number;
  readonly stolen?: true;
  readonly label?: string;
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

export const NO_ROW: LockRow = { version: 0, token: 0, holds: [], waiters: [] };

/**
 * Encodes the state as the row has it. Times that count from the write are left out, or relative (`span`): the server puts
 * the time of the write into the column `at`.
 */
export function encodeState({ holds, waiters }: Pick<LockRecord, 'holds' | 'waiters'>): Buffer {
  if (holds.length + waiters.length === 0) return Buffer.alloc(0);
  return Buffer.from(`{"holds":${JSON.stringify(holds.map(holdJson))},"waiters":[${groupsOf(waiters)}]}`);
}

/** Encodes the state of a resource with one hold. Its token is the one that the row's column gets. */
export function encodeSole(id: string, mode: LockMode, label: string | undefined, span: number): Buffer {
  const hold: HoldJson = { id, mode: modeText(mode), span, label };
  return Buffer.from(JSON.stringify({ holds: [hold], waiters: [] }));
}

export function decodeState(version: number, token: number, at: number, bytes: Buffer): LockRow {
  if (bytes.length === 0) return { version, token, holds: [], waiters: [], bytes };
  const state = JSON.parse(bytes.toString('utf8')) as { holds: HoldJson[]; waiters: WaitersJson[] };
  const holds = state.holds.map((json): HoldRecord => {
    const { id, label } = json;
    return {
      id,
      mode: modeOf(json.mode),
      label,
      token: json.token ?? token,
      since: json.since ?? at,
      until: json.until ?? at + (json.span ?? 0),
      span: undefined,
      stolen: json.stolen ?? false,
    };
  });
  const waiters = state.waiters.flatMap(({ ids, mode, by, ttl, since = at, label }) => {
    const shared = { mode: modeOf(mode), label, client: by, ttl, since };
    return ids.map((id): WaiterRecord => ({ id, ...shared }));
  });
  return { version, token, holds, waiters, bytes };
}

/** Makes the JSON of a hold; `JSON.stringify` leaves out undefined fields. */
function holdJson({ id, mode, token, since, until, span, stolen, label }: HoldRecord): HoldJson {
  return {
    id,
    mode: modeText(mode),
    token,
    since,
    ...(span === undefined ? { until } : { span }),
    stolen: stolen || undefined,
    label,
  };
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

/** Makes the text of one group. The ids come last: the text behind the first change is not written again. */
function groupText({ mode, client, ttl, since, label }: WaiterRecord, ids: readonly string[]): string {
  const shared: Omit<WaitersJson, 'ids'> = {
    mode: modeText(mode),
    by: client,
    ttl,
    since,
    label,
  };
  return `${JSON.stringify(shared).slice(0, -1)},"ids":${textsOf(ids)}}`;
}

function textsOf(ids: readonly string[]): string {
  const all = ids.join('');
  const areVerbatim = JSON.stringify(all).length === all.length + 2;
  return areVerbatim ? `["${ids.join('","')}"]` : JSON.stringify(ids);
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
