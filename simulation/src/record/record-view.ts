import type { LockMode } from '@locks/core';
import type { HoldRecord, WaiterRecord } from '@locks/core/rules';

/** What the record of a resource says of those who hold and wait, without a look at times: only an observer has those. */
export interface RecordView {
  readonly holds: readonly HoldRecord[];
  readonly waiters: readonly WaiterRecord[];
  /** The write that granted or renewed each hold last, by the id of the hold. */
  readonly renewals: ReadonlyMap<string, RecordRenewal>;
}

export interface RecordRenewal {
  readonly mark: number;
  /** In microseconds. */
  readonly span: number;
}

interface StateJson {
  readonly holds: readonly (Readonly<Record<string, string | number | true>> & { readonly id: string })[];
  readonly waiters: readonly (Readonly<Record<string, string | number>> & {
    readonly ids: readonly string[];
  })[];
}

interface HeadJson {
  readonly token: number;
}

const NOTHING: RecordView = { holds: [], waiters: [], renewals: new Map() };

export function viewOfRecord(value: Uint8Array | undefined): RecordView {
  if (value === undefined || value.length === 0) return NOTHING;
  const [head = '', state = ''] = new TextDecoder().decode(value).split('\n');
  const { token: last } = JSON.parse(head) as HeadJson;
  if (state === '') return NOTHING;
  const { holds, waiters } = JSON.parse(state) as StateJson;
  return {
    holds: holds.map(({ id, label, mode, token = last, stolen }): HoldRecord => {
      const own = { id, mode: modeOf(String(mode)), label: label as string | undefined };
      const noTimes = { since: undefined, until: undefined, span: undefined };
      return { ...own, ...noTimes, token: Number(token), stolen: stolen === true };
    }),
    waiters: waiters.flatMap(({ ids, mode, by, ttl, label, since }) =>
      ids.map((id) => ({
        id,
        mode: modeOf(String(mode)),
        label: label as string | undefined,
        client: String(by),
        ttl: Number(ttl),
        since: since as number | undefined,
      })),
    ),
    renewals: new Map(holds.map(({ id, mark, span }) => [id, { mark: Number(mark), span: Number(span) }])),
  };
}

function modeOf(text: string): LockMode {
  if (text === 'exclusive' || text === 'shared') return { kind: text };
  const [weight, limit] = text.split('/');
  return { kind: 'permit', limit: Number(limit), weight: Number(weight) };
}
