import type { DatabaseSync } from 'node:sqlite';
import type { LockMode } from '@locks/core';
import type { HoldRecord, WaiterRecord } from '@locks/core/rules';

/** What the tables say of one resource, read by what docs/backends/sqlite.md says of them alone. Times are microseconds. */
export interface TableView {
  /** Also those whose time is over. */
  readonly holds: readonly HoldRecord[];
  readonly waiters: readonly SeenWaiter[];
}

export interface SeenWaiter extends WaiterRecord {
  readonly pid: number;
  readonly aliveUntil: number;
}

export interface SeenClient {
  readonly id: number;
  readonly pid: number;
}

export const NOTHING: TableView = { holds: [], waiters: [] };

const HOLDS = `SELECT CAST(resource AS TEXT) AS name, acquisition_id AS id, kind, weight, permits, label, token,
  granted_at AS since, expires_at AS until FROM holds ORDER BY name, granted_at`;
const WAITERS = `SELECT CAST(resource AS TEXT) AS name, acquisition_id AS id, kind, weight, permits, label, enqueued_at AS since,
  client, alive_until AS aliveUntil, pid FROM waiters JOIN clients USING (client) ORDER BY name, ticket`;
const CLIENTS = 'SELECT client AS id, pid FROM clients';

type Row = Readonly<Record<string, unknown>>;

/** Reads the tables of the lock file, by a connection of its own. */
export class TableReader {
  readonly #holds: () => Row[];
  readonly #waiters: () => Row[];
  readonly #clients: () => Row[];

  constructor(database: DatabaseSync) {
    const [holds, waiters, clients] = [HOLDS, WAITERS, CLIENTS].map((sql) => database.prepare(sql));
    this.#holds = () => (holds?.all() ?? []) as Row[];
    this.#waiters = () => (waiters?.all() ?? []) as Row[];
    this.#clients = () => (clients?.all() ?? []) as Row[];
  }

  read(): ReadonlyMap<string, TableView> {
    const views = new Map<string, { holds: HoldRecord[]; waiters: SeenWaiter[] }>();
    const viewOf = (name: unknown) => {
      const view = views.get(String(name)) ?? { holds: [], waiters: [] };
      views.set(String(name), view);
      return view;
    };
    for (const row of this.#holds()) {
      // A hold that was stolen ended then, and its row has the negative of its end.
      const until = Number(row['until']);
      viewOf(row['name']).holds.push({
        ...namedIn(row),
        token: Number(row['token']),
        until,
        span: undefined,
        stolen: false,
      });
    }
    for (const row of this.#waiters())
      viewOf(row['name']).waiters.push({
        ...namedIn(row),
        client: String(row['client']),
        ttl: 0,
        pid: Number(row['pid']),
        aliveUntil: Number(row['aliveUntil']),
      });
    return views;
  }

  clients(): SeenClient[] {
    return this.#clients().map((row) => ({ id: Number(row['id']), pid: Number(row['pid']) }));
  }
}

function namedIn(row: Row) {
  return {
    id: String(row['id']),
    mode: modeIn(row),
    label: (row['label'] ?? undefined) as string | undefined,
    since: Number(row['since']),
  };
}

function modeIn({ kind, weight, permits }: Row): LockMode {
  if (kind === 2) return { kind: 'permit', limit: Number(permits), weight: Number(weight) };
  return { kind: kind === 1 ? 'shared' : 'exclusive' };
}
