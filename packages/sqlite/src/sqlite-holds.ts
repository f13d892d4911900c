import {
  type AcquireRequest,
  type Call,
  Capacity,
  type Grant,
  type Holder,
  holdsAlone,
  type LockMode,
  type RenewalStatus,
} from '@locks/core/backend';
import { modeColumns, nameBytes, type SqliteRow, toHolder, toMicros, toMode, tokenOf } from './columns.ts';
import { SqliteFileError } from './file-error.ts';
import type { LockFile } from './lock-file.ts';

const BEFORE_ALL: readonly [Uint8Array, string] = [new Uint8Array(0), ''];
const SWEEP_ROWS = 256;

/** The live holds of one resource. */
export interface LiveHolds {
  /** The mode of one of the holds; but for their weights all are alike. */
  readonly mode: LockMode;
  /** The sum of the weights of permits. */
  readonly used: number;
  /** The row of one of the holds. */
  readonly row: SqliteRow;
}

export interface ResourceHolds {
  /** The live holds; `undefined`: nobody holds the resource. */
  readonly live: LiveHolds | undefined;
  /** Whether there may be rows of expired holds. */
  readonly hasExpired: boolean;
}

/** All live holds of a resource, counted. */
export interface HoldsSummary extends LiveHolds {
  readonly holders: number;
  /** The time at which the first of the holds ends. */
  readonly endsAt: number;
}

const NO_HOLDS: ResourceHolds = { live: undefined, hasExpired: false };

/** The holds in the file. Every method runs inside a transaction that the caller has begun. */
export class SqliteHolds {
  readonly #file: LockFile;
  #sweptUpTo: readonly [resource: Uint8Array, acquisitionId: string] = BEFORE_ALL;

  constructor(file: LockFile) {
    this.#file = file;
  }

  read(resource: Uint8Array, now: number): ResourceHolds {
    const row = this.#file.statements.peek.get(resource, now);
    if (row === undefined) return NO_HOLDS;
    const mode = toMode(row);
    // One share represents all shares, so that many readers do not slow each other down. Expired rows beside it are swept.
    if (row.live && mode.kind !== 'permit') return { live: { mode, used: 0, row }, hasExpired: false };
    return { live: this.summarize(resource, now), hasExpired: true };
  }

  summarize(resource: Uint8Array, now: number): HoldsSummary | undefined {
    const row = this.#file.statements.holdsSummary.get(resource, now);
    const holders = Number(row?.holders ?? 0);
    if (row === undefined || holders === 0) return undefined;
    return { holders, mode: toMode(row), used: Number(row.used), row, endsAt: Number(row.expires_at) };
  }

  /** Finds the hold of one acquisition among the live holds. */
  own(
    resource: Uint8Array,
    acquisitionId: string,
    now: number,
    { mode, row }: LiveHolds,
  ): SqliteRow | undefined {
    if (row.acquisition_id === acquisitionId) return row;
    if (holdsAlone(mode)) return undefined;
    return this.#file.statements.ownHold.get(resource, acquisitionId, now);
  }

  /**
   * Grants to a request. The caller knows, from this same transaction, that the request fits and that its turn has come.
   *
   * @param hasExpired - whether rows of expired holds may have to be removed first
   */
  grant(
    request: AcquireRequest,
    resource: Uint8Array,
    call: Call,
    mode: LockMode,
    hasExpired: boolean,
  ): Grant {
    const { statements, clock } = this.#file;
    // The lease is counted from before the file's own time stamp: in the file it ends later than the holder believes.
    const countedFrom = call.now();
    const now = clock.nowMicros();
    if (hasExpired) statements.dropExpiredHolds.run(resource, now);
    const minted = statements.mintToken.get(Date.now() * 1000);
    if (minted === undefined || minted.boot !== clock.boot) throw this.#twoMachines();
    const { acquisitionId, ttlMs, label } = request;
    statements.grantHold.run(
      resource,
      acquisitionId,
      ...modeColumns(mode),
      String(minted.token),
      now,
      toMicros(ttlMs),
      label ?? null,
    );
    return { request, fencingToken: tokenOf(minted), countedFrom };
  }

  renew(grant: Grant, ttlMs: number): RenewalStatus {
    const { resource, acquisitionId } = grant.request;
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const token = String(grant.fencingToken);
    const renewed = this.#file.statements.renewHold.run(bytes, acquisitionId, now, toMicros(ttlMs), token);
    return renewed.changes === 1 ? { status: 'held' } : this.#loss(grant, bytes, now);
  }

  downgrade(grant: Grant): RenewalStatus {
    const { resource, acquisitionId } = grant.request;
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const changed = this.#file.statements.downgradeHold.run(bytes, acquisitionId, now);
    return changed.changes === 1 ? { status: 'held' } : this.#loss(grant, bytes, now);
  }

  #loss({ request }: Grant, resource: Uint8Array, now: number): RenewalStatus {
    const found = this.#file.statements.whatBecame.get(resource, request.acquisitionId, now);
    const end = found?.own_end;
    if (typeof end === 'number') return { status: 'lost', reason: end < 0 ? 'taken-over' : 'expired' };
    // Shares and permits live beside other holds, which therefore have not replaced them.
    const { mode } = request;
    const other = typeof found?.other === 'number' ? toMode({ kind: found.other }).kind : undefined;
    const taken = other !== undefined && (other !== mode.kind || holdsAlone(mode));
    return { status: 'lost', reason: taken ? 'taken-over' : 'force-released' };
  }

  release(grant: Grant): 'released' | 'not-held' {
    const { statements, clock } = this.#file;
    const { resource, acquisitionId } = grant.request;
    const ended = statements.releaseHold.get(nameBytes(resource), acquisitionId, clock.nowMicros());
    return ended?.live ? 'released' : 'not-held';
  }

  /** Removes a hold, whether it lives or not. */
  drop(resource: Uint8Array, acquisitionId: string): void {
    this.#file.statements.dropHold.run(resource, acquisitionId);
  }

  forceRelease(resource: string, expectedId: string | undefined): Holder[] {
    const { statements, clock } = this.#file;
    const now = clock.nowMicros();
    return statements.forceRelease
      .all(nameBytes(resource), expectedId ?? null)
      .filter((row) => Number(row.expires_at) > now)
      .map((row) => toHolder(row, now));
  }

  /** Ends all holds, and marks their rows so that their owners learn of it (docs/spec.md §17.1). */
  steal(resource: Uint8Array, now: number): void {
    this.#file.statements.stealHolds.run(resource, now);
  }

  resize(resource: Uint8Array, limit: number): void {
    this.#file.statements.resizeHolds.run(resource, limit);
  }

  /** Removes a few expired holds of resources that nobody asks for any more. */
  sweep(now: number): void {
    const rows = this.#file.statements.sweepHolds.all(...this.#sweptUpTo, now, SWEEP_ROWS);
    for (const row of rows) {
      if (row.dead) this.drop(row.resource as Uint8Array, String(row.acquisition_id));
    }
    const last = rows.length === SWEEP_ROWS ? rows.at(-1) : undefined;
    this.#sweptUpTo =
      last === undefined ? BEFORE_ALL : [last.resource as Uint8Array, String(last.acquisition_id)];
  }

  #twoMachines(): SqliteFileError {
    return new SqliteFileError(
      'TWO_MACHINES',
      `lock file ${this.#file.path}: another machine uses it too. Their clocks have nothing in common, so locks in ` +
        'this file do not exclude. Keep it on a local disk, or choose a backend that is made for networks',
    );
  }
}

export function capacityBeside(live: LiveHolds | undefined): Capacity {
  return live === undefined ? new Capacity() : new Capacity(live.mode.kind, live.used);
}
