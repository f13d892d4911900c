import type { AcquireRequest, Call, Grant, Holder, ResourceState, Standing } from '@locks/core/backend';
import { type Client, processHasEnded } from './client.ts';
import { modeColumns, nameBytes, type Row, toHolder, toMicros, tokenOf, toWaiter } from './columns.ts';
import { SqliteFileError } from './file-error.ts';
import type { LockFile } from './lock-file.ts';

const beforeAll: readonly [Uint8Array, string] = [new Uint8Array(0), ''];
const sweepRows = 256;

/** How long a waiter's process may be silent before its waiters are passed over. */
export const clientAliveMs = 2_000;

export type AttemptStep =
  | { readonly status: 'granted'; readonly grant: Grant }
  | { readonly status: 'contended'; readonly enqueued: boolean };

export type Turn =
  | { readonly status: 'held'; readonly by: string; readonly forMs: number }
  | {
      readonly status: 'free';
      readonly next: string;
      readonly nextHasEnded: boolean;
      readonly aliveForMs: number;
    }
  | { readonly status: 'nobody-waits' };

/** The steps of the protocol. Each runs inside a transaction that the caller has begun, at once and to its end. */
export class Steps {
  readonly #file: LockFile;
  readonly #client: Client;
  #sweptUpTo: readonly [resource: Uint8Array, acquisitionId: string] = beforeAll;

  constructor(file: LockFile, client: Client) {
    this.#file = file;
    this.#client = client;
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): AttemptStep {
    const { statements, clock } = this.#file;
    const resource = nameBytes(request.resource);
    const countedFrom = call.now();
    const now = clock.nowMicros();
    const held = statements.liveHold.get(resource, now);
    if (held?.acquisition_id === request.acquisitionId) {
      const validForMs = (Number(held.expires_at) - now) / 1000;
      return { status: 'granted', grant: { request, fencingToken: tokenOf(held), countedFrom, validForMs } };
    }
    if (held === undefined) {
      const first = this.#firstInLine(resource, now)?.acquisition_id;
      if (first === undefined || first === request.acquisitionId) {
        return { status: 'granted', grant: this.#grant(request, resource, call, first !== undefined) };
      }
    }
    if (enqueue) this.#enqueue(request, resource, now);
    return { status: 'contended', enqueued: enqueue };
  }

  /** The caller knows, from this same transaction, that the resource is free and that it is this request's turn. */
  #grant(request: AcquireRequest, resource: Uint8Array, call: Call, waited: boolean): Grant {
    const { statements, clock } = this.#file;
    // Counted from before the store's own time stamp: the lease in the file ends later than the holder believes.
    const countedFrom = call.now();
    const now = clock.nowMicros();
    statements.dropExpiredHolds.run(resource, now);
    const minted = statements.mintToken.get(Date.now() * 1000);
    if (minted === undefined || minted.boot !== clock.boot) throw this.#twoMachines();
    const [kind, weight, permits] = modeColumns(request.mode);
    const { acquisitionId, ttlMs, label } = request;
    statements.grantHold.run(
      resource,
      acquisitionId,
      kind,
      weight,
      permits,
      String(minted.token),
      now,
      toMicros(ttlMs),
      label ?? null,
    );
    if (waited) statements.dequeue.run(this.#client.id, acquisitionId);
    return { request, fencingToken: tokenOf(minted), countedFrom };
  }

  /** The first whose process lives. Those known to have ended are taken out, which spares the others their silence. */
  #firstInLine(resource: Uint8Array, now: number): Row | undefined {
    const { statements } = this.#file;
    for (;;) {
      const first = statements.firstInLine.get(resource, now);
      if (first === undefined || !processHasEnded(first, this.#client)) return first;
      statements.leaveLine.run(Number(first.client));
      statements.dropClient.run(Number(first.client));
    }
  }

  #dropDeadClients(now: number): void {
    this.#file.statements.dropDeadWaiters.run(now);
    this.#file.statements.dropDeadClients.run(now);
  }

  #keepClient(now: number): void {
    const { id, pid, pidSpace } = this.#client;
    this.#file.statements.keepClient.run(id, now + toMicros(clientAliveMs), pid, pidSpace);
  }

  #enqueue(request: AcquireRequest, resource: Uint8Array, now: number): void {
    const { statements } = this.#file;
    const [kind, weight, permits] = modeColumns(request.mode);
    this.#keepClient(now);
    statements.enqueue.run(
      resource,
      this.#client.id,
      request.acquisitionId,
      kind,
      weight,
      permits,
      now,
      request.label ?? null,
    );
  }

  /** Grants to the next in line if the resource is free and `find` says that it waits in this process. */
  handOver(
    resource: string,
    find: (acquisitionId: string) => { readonly request: AcquireRequest; readonly call: Call } | undefined,
  ): Grant | undefined {
    const { statements, clock } = this.#file;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    if (statements.liveHold.get(bytes, now) !== undefined) return undefined;
    const first = this.#firstInLine(bytes, now)?.acquisition_id;
    const waiter = typeof first === 'string' ? find(first) : undefined;
    return waiter === undefined ? undefined : this.#grant(waiter.request, bytes, waiter.call, true);
  }

  abandon(request: AcquireRequest): void {
    const { statements } = this.#file;
    statements.dropHold.run(nameBytes(request.resource), request.acquisitionId);
    statements.dequeue.run(this.#client.id, request.acquisitionId);
  }

  renew(grant: Grant, ttlMs: number): Standing {
    const { statements, clock } = this.#file;
    const { resource, acquisitionId } = grant.request;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    if (statements.renewHold.run(bytes, acquisitionId, now, toMicros(ttlMs)).changes === 1)
      return { status: 'held' };
    const found = statements.holdExists.get(bytes, acquisitionId, now);
    if (found?.taken) return { status: 'lost', reason: 'taken-over' };
    return { status: 'lost', reason: found?.own ? 'expired' : 'force-released' };
  }

  release(grant: Grant): 'released' | 'not-held' {
    const { statements, clock } = this.#file;
    const { resource, acquisitionId } = grant.request;
    const ended = statements.releaseHold.get(nameBytes(resource), acquisitionId, clock.nowMicros());
    return ended?.live ? 'released' : 'not-held';
  }

  forceRelease(resource: string, expectedId: string | undefined): Holder[] {
    const { statements, clock } = this.#file;
    const now = clock.nowMicros();
    return statements.forceRelease
      .all(nameBytes(resource), expectedId ?? null)
      .filter((row) => Number(row.expires_at) > now)
      .map((row) => toHolder(row, now));
  }

  inspect(resource: string): ResourceState {
    const { statements, clock } = this.#file;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    return {
      resource,
      holders: statements.holders.all(bytes, now).map((row) => toHolder(row, now)),
      waiters: statements.line.all(bytes, now).map((row) => toWaiter(row, now)),
    };
  }

  /** Names in byte order, at most `limit`, starting with `from` or after it. */
  resourcesAfter(from: Uint8Array, inclusive: boolean, limit: number): Uint8Array[] {
    const { statements, clock } = this.#file;
    return statements.resourcesAfter
      .all(from, inclusive ? 1 : 0, clock.nowMicros(), limit)
      .map((row) => row.resource as Uint8Array);
  }

  /** Whose turn it is: what a poller wants to know of a resource. Reads only. */
  turn(resource: string): Turn {
    const { statements, clock } = this.#file;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    const held = statements.liveHold.get(bytes, now);
    if (held !== undefined) {
      return {
        status: 'held',
        by: String(held.acquisition_id),
        forMs: (Number(held.expires_at) - now) / 1000,
      };
    }
    const first = statements.firstInLine.get(bytes, now);
    if (first === undefined) return { status: 'nobody-waits' };
    const aliveForMs = (Number(first.alive_until) - now) / 1000;
    const nextHasEnded = processHasEnded(first, this.#client);
    return { status: 'free', next: String(first.acquisition_id), nextHasEnded, aliveForMs };
  }

  /** Keeps this client's waiters alive, clears those of dead ones, and gives the ids that the file has for this client. */
  heartbeat(): Set<string> {
    const { statements, clock } = this.#file;
    const now = clock.nowMicros();
    this.#keepClient(now);
    this.#dropDeadClients(now);
    return new Set(statements.ownWaiters.all(this.#client.id).map((row) => String(row.acquisition_id)));
  }

  /** Clears what dead processes left: their waiters, and a few of the holds on names that nobody asks for any more. */
  sweep(): void {
    const { statements, clock } = this.#file;
    const now = clock.nowMicros();
    this.#dropDeadClients(now);
    const rows = statements.sweepHolds.all(...this.#sweptUpTo, now, sweepRows);
    for (const row of rows) {
      if (row.dead) statements.dropHold.run(row.resource as Uint8Array, String(row.acquisition_id));
    }
    const last = rows.length === sweepRows ? rows.at(-1) : undefined;
    this.#sweptUpTo =
      last === undefined ? beforeAll : [last.resource as Uint8Array, String(last.acquisition_id)];
  }

  dequeue(acquisitionId: string): void {
    this.#file.statements.dequeue.run(this.#client.id, acquisitionId);
  }

  leave(): void {
    this.#file.statements.leaveLine.run(this.#client.id);
    this.#file.statements.dropClient.run(this.#client.id);
  }

  #twoMachines(): SqliteFileError {
    return new SqliteFileError(
      'TWO_MACHINES',
      `lock file ${this.#file.path}: another machine uses it too. Their clocks have nothing in common, so locks in ` +
        'this file do not exclude. Keep it on a local disk, or choose a backend that is made for networks',
    );
  }
}
