import type { AcquireRequest, Call, Grant, Holder, LockMode, Standing } from '@locks/core/backend';
import { modeColumns, nameBytes, type Row, toHolder, toMicros, toMode, tokenOf } from './columns.ts';
import { SqliteFileError } from './file-error.ts';
import type { LockFile } from './lock-file.ts';
import { Room } from './room.ts';

const beforeAll: readonly [Uint8Array, string] = [new Uint8Array(0), ''];
const sweepRows = 256;

/** The live holds of one resource. */
export interface LiveUse {
  /** Of one of them; but for their weights all are alike. */
  readonly mode: LockMode;
  /** The weights of permits together. */
  readonly used: number;
  /** One of them. */
  readonly row: Row;
}

export interface Use {
  /** Absent: nobody holds it. */
  readonly live?: LiveUse;
  /** Whether rows that ran out may stand there. */
  readonly hasRemains: boolean;
}

/** All live holds of a resource, counted. */
export interface Survey extends LiveUse {
  readonly holders: number;
  /** When the first of them ends. */
  readonly endsAt: number;
}

const unused: Use = { hasRemains: false };

/** The holds in the file. Every method runs inside a transaction that the caller has begun. */
export class Holds {
  readonly #file: LockFile;
  #sweptUpTo: readonly [resource: Uint8Array, acquisitionId: string] = beforeAll;

  constructor(file: LockFile) {
    this.#file = file;
  }

  use(resource: Uint8Array, now: number): Use {
    const row = this.#file.statements.peek.get(resource, now);
    if (row === undefined) return unused;
    const mode = toMode(row);
    // One share tells of all, so that many readers do not slow each other down. What ran out beside it is swept.
    if (row.live && mode.kind !== 'permit') return { live: { mode, used: 0, row }, hasRemains: false };
    const live = this.survey(resource, now);
    return live === undefined ? { hasRemains: true } : { live, hasRemains: true };
  }

  survey(resource: Uint8Array, now: number): Survey | undefined {
    const row = this.#file.statements.use.get(resource, now);
    const holders = Number(row?.holders ?? 0);
    if (row === undefined || holders === 0) return undefined;
    return { holders, mode: toMode(row), used: Number(row.used), row, endsAt: Number(row.expires_at) };
  }

  /** The hold of one acquisition among those that live. */
  own(resource: Uint8Array, acquisitionId: string, now: number, { mode, row }: LiveUse): Row | undefined {
    if (row.acquisition_id === acquisitionId) return row;
    if (mode.kind === 'exclusive') return undefined;
    return this.#file.statements.ownHold.get(resource, acquisitionId, now);
  }

  /**
   * The caller knows, from this same transaction, that it fits and that it is this request's turn.
   *
   * @param tidies - whether rows that ran out may stand in the way
   */
  grant(request: AcquireRequest, resource: Uint8Array, call: Call, mode: LockMode, tidies: boolean): Grant {
    const { statements, clock } = this.#file;
    // Counted from before the store's own time stamp: the lease in the file ends later than the holder believes.
    const countedFrom = call.now();
    const now = clock.nowMicros();
    if (tidies) statements.dropExpiredHolds.run(resource, now);
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

  renew(grant: Grant, ttlMs: number): Standing {
    const { resource, acquisitionId } = grant.request;
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const renewed = this.#file.statements.renewHold.run(bytes, acquisitionId, now, toMicros(ttlMs));
    return renewed.changes === 1 ? { status: 'held' } : this.#loss(grant, bytes, now);
  }

  downgrade(grant: Grant): Standing {
    const { resource, acquisitionId } = grant.request;
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const changed = this.#file.statements.downgradeHold.run(bytes, acquisitionId, now);
    return changed.changes === 1 ? { status: 'held' } : this.#loss(grant, bytes, now);
  }

  #loss({ request }: Grant, resource: Uint8Array, now: number): Standing {
    const found = this.#file.statements.whatBecame.get(resource, request.acquisitionId, now);
    const end = found?.own_end;
    if (typeof end === 'number') return { status: 'lost', reason: end < 0 ? 'taken-over' : 'expired' };
    // Shares and permits live beside others, who have therefore not taken anything.
    const { kind } = request.mode;
    const other = typeof found?.other === 'number' ? toMode({ kind: found.other }).kind : undefined;
    const taken = other !== undefined && (other !== kind || kind === 'exclusive');
    return { status: 'lost', reason: taken ? 'taken-over' : 'force-released' };
  }

  release(grant: Grant): 'released' | 'not-held' {
    const { statements, clock } = this.#file;
    const { resource, acquisitionId } = grant.request;
    const ended = statements.releaseHold.get(nameBytes(resource), acquisitionId, clock.nowMicros());
    return ended?.live ? 'released' : 'not-held';
  }

  /** Ends a hold whatever its state. */
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

  /** Ends all, and leaves word of it for their owners (docs/spec.md §17.1). */
  rob(resource: Uint8Array, now: number): void {
    this.#file.statements.stealHolds.run(resource, now);
  }

  resize(resource: Uint8Array, limit: number): void {
    this.#file.statements.resizeHolds.run(resource, limit);
  }

  /** Clears a few of the holds that ran out on names that nobody asks for any more. */
  sweep(now: number): void {
    const rows = this.#file.statements.sweepHolds.all(...this.#sweptUpTo, now, sweepRows);
    for (const row of rows) {
      if (row.dead) this.drop(row.resource as Uint8Array, String(row.acquisition_id));
    }
    const last = rows.length === sweepRows ? rows.at(-1) : undefined;
    this.#sweptUpTo =
      last === undefined ? beforeAll : [last.resource as Uint8Array, String(last.acquisition_id)];
  }

  #twoMachines(): SqliteFileError {
    return new SqliteFileError(
      'TWO_MACHINES',
      `lock file ${this.#file.path}: another machine uses it too. Their clocks have nothing in common, so locks in ` +
        'this file do not exclude. Keep it on a local disk, or choose a backend that is made for networks',
    );
  }
}

export function roomBeside(live: LiveUse | undefined): Room {
  return live === undefined ? new Room() : new Room(live.mode.kind, live.used);
}
