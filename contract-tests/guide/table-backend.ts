import { DatabaseSync } from 'node:sqlite';
import { refuseAfterClose } from '@locks/core/backend';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import type { RenewItem, ResourceState, RenewalStatus } from '@locks/core/backend';

const capabilities = {
  tenure: 'lease', // the store's clock ends an abandoned hold
  renewal: 'any-client', // a renewal needs the id and the token of the grant, and nothing that this client remembers
  reach: 'host', // processes of one machine share the file
  modes: ['exclusive'],
  order: 'none', // no queue: the first attempt after a release is granted
  fencing: 'durable',
  ttl: { minMs: 20, stepMs: 1 },
  features: [], // no list, no waiters, no forced release
} as const;

// One counter for all tokens: a row can go without its resource's tokens starting again.
const schema = `
  PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; -- no wait for the disk in a step: other processes wait for its end
  CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL);
  INSERT OR IGNORE INTO tokens VALUES (1, 0);
  CREATE TABLE IF NOT EXISTS leases (name BLOB PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL,
    label TEXT, since REAL NOT NULL, ends REAL NOT NULL);`;

interface Row {
  readonly owner: string;
  readonly token: number;
  readonly label: string | null;
  readonly since: number;
  readonly ends: number;
}

export function tableBackend(path: string): LockBackend<typeof capabilities> {
  let database: DatabaseSync | undefined;

  function open(): DatabaseSync {
    const opened = new DatabaseSync(path, { timeout: 200 });
    opened.exec(schema);
    return opened;
  }

  /** One transaction on the row of a resource. An expired row counts as absent. */
  function step<T>(
    resource: string,
    act: (db: DatabaseSync, key: Buffer, row: Row | undefined, now: number) => T,
  ): T {
    database ??= open(); // at the first call: building a backend does no I/O
    database.exec('BEGIN IMMEDIATE');
    try {
      const key = Buffer.from(resource);
      const now = Date.now();
      const row = database.prepare('SELECT * FROM leases WHERE name = ? AND ends > ?').get(key, now);
      const result = act(database, key, row as unknown as Row | undefined, now);
      database.exec('COMMIT');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  /** Removes the lease of its owner only, never that of another. */
  function remove({ resource, acquisitionId }: AcquireRequest): boolean {
    return step(resource, (db, key, row) => {
      if (row?.owner !== acquisitionId) return false;
      db.prepare('DELETE FROM leases WHERE name = ?').run(key);
      return true;
    });
  }

  function renewOne({ grant, ttlMs }: RenewItem): RenewalStatus {
    const { resource, acquisitionId } = grant.request;
    return step(resource, (db, key, row, now) => {
      if (row === undefined) return { status: 'lost', reason: 'force-released' };
      const isOwn = row.owner === acquisitionId && BigInt(row.token) === grant.fencingToken;
      if (!isOwn) return { status: 'lost', reason: 'taken-over' };
      db.prepare('UPDATE leases SET ends = ? WHERE name = ?').run(now + ttlMs, key);
      return { status: 'held' };
    });
  }

  return refuseAfterClose({
    spec: 'locks-backend/1',
    name: 'table',
    capabilities,

    async attempt(request: AcquireRequest, _enqueue: boolean, call: Call): Promise<Attempt> {
      const countedFrom = call.now(); // before sending
      const { resource, acquisitionId, label = null, ttlMs } = request;
      return step(resource, (db, key, row, now) => {
        const granted = (token: number, validForMs: number): Attempt => {
          return {
            status: 'granted',
            grant: { request, countedFrom, fencingToken: BigInt(token), validForMs },
          };
        };
        if (row?.owner === acquisitionId) return granted(row.token, row.ends - now - 1); // whole milliseconds: rounded down
        if (row !== undefined) return { status: 'contended', retryAfterMs: 10 };
        const next = db.prepare('UPDATE tokens SET last = last + 1 RETURNING last');
        const token = next.get() as { last: number };
        const insert = db.prepare('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?)'); // replaces an expired row
        insert.run(key, acquisitionId, token.last, label, now, now + ttlMs);
        return granted(token.last, ttlMs);
      });
    },

    async abandon(request: AcquireRequest): Promise<void> {
      remove(request);
    },

    async renew(items: readonly RenewItem[]): Promise<readonly RenewalStatus[]> {
      return items.map(renewOne);
    },

    async release(grant: Grant): Promise<'released' | 'not-held'> {
      return remove(grant.request) ? 'released' : 'not-held';
    },

    async inspect(resource: string): Promise<ResourceState> {
      return step(resource, (_db, _key, row, now) => {
        if (row === undefined) return { name: resource, holders: [], waiters: [] };
        const times = { heldForMs: now - row.since, expiresInMs: row.ends - now };
        const label = row.label === null ? {} : { label: row.label };
        const ids = { acquisitionId: row.owner, fencingToken: BigInt(row.token) };
        return {
          name: resource,
          holders: [{ ...ids, ...label, ...times, mode: { kind: 'exclusive' } }],
          waiters: [],
        };
      });
    },

    // SQLITE_BUSY: another process was writing. The same call may succeed if repeated.
    isRetryable: (error) => (error as { errcode?: number }).errcode === 5,

    async close(): Promise<void> {
      database?.close();
    },
  });
}
