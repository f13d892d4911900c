import type { LockMode } from '@locks/core';
import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import type { LockRecordRow } from './record-command.ts';

/** What a row of the table of locks says, read by what docs/backends/mysql.md says of it alone. Times are microseconds. */
export interface RowView {
  readonly holds: readonly HoldRecord[];
  readonly waiters: readonly WaiterRecord[];
}

interface StateJson {
  readonly holds: readonly (Readonly<Record<string, string | number | true>> & { readonly id: string })[];
  readonly waiters: readonly (Readonly<Record<string, string | number>> & {
    readonly ids: readonly string[];
  })[];
}

const NOTHING: RowView = { holds: [], waiters: [] };

export function viewOfRow(row: LockRecordRow | undefined): RowView {
  if (row === undefined || row.state === '') return NOTHING;
  const { at } = row;
  const { holds, waiters } = JSON.parse(row.state) as StateJson;
  return {
    holds: holds.map((hold): HoldRecord => {
      const { id, label, span, token = row.token } = hold;
      const mode = modeOf(String(hold['mode']));
      const until = Number(hold['until'] ?? at + Number(span));
      const own = { id, mode, label: label as string | undefined, since: undefined };
      return { ...own, token: Number(token), until, span: undefined, stolen: hold['stolen'] === true };
    }),
    // Who waits since the row was written has no time of its own.
    waiters: waiters.flatMap(({ ids, mode, by, ttl, label, since = at }) =>
      ids.map((id) => ({
        id,
        mode: modeOf(String(mode)),
        label: label as string | undefined,
        client: String(by),
        ttl: Number(ttl),
        since: Number(since),
      })),
    ),
  };
}

function modeOf(text: string): LockMode {
  if (text === 'exclusive' || text === 'shared') return { kind: text };
  const [weight, limit] = text.split('/');
  return { kind: 'permit', limit: Number(limit), weight: Number(weight) };
}
