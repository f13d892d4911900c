import type { AcquireRequest, LockMode } from '@locks/core/backend';
import { type Client, processHasEnded } from './client.ts';
import { modeColumns, type Row, toMicros, toMode } from './columns.ts';
import type { LockFile } from './lock-file.ts';
import type { Room } from './room.ts';

/** How long a waiter's process may be silent before its waiters are passed over. */
export const clientAliveMs = 2_000;

export interface Turns {
  /** Those who may enter now, in their order. */
  readonly ready: readonly Row[];
  /** The first who may not, and who holds back all behind it. Unknown while one holds the resource exclusively. */
  readonly blocked: Row | undefined;
}

/** The lines of waiters in the file, as one backend object sees and joins them. */
export class Line {
  readonly #file: LockFile;
  readonly #client: Client;

  constructor(file: LockFile, client: Client) {
    this.#file = file;
    this.#client = client;
  }

  /**
   * Whose turn it is, from the head of the line on: all that fit together into `room`, up to the first that does not
   * (docs/spec.md §15.2). Those of other processes count as if they had entered: their room is theirs.
   */
  turns(resource: Uint8Array, now: number, room: Room): Turns {
    return this.#walk(resource, now, room, true);
  }

  /** The same outside a write transaction: who is known to have ended still stands there. */
  readTurns(resource: Uint8Array, now: number, room: Room): Turns {
    return this.#walk(resource, now, room, false);
  }

  #walk(resource: Uint8Array, now: number, room: Room, clears: boolean): Turns {
    const ready: Row[] = [];
    let ticket = 0;
    while (!room.isFull) {
      const row = this.#next(resource, now, ticket, clears);
      if (row === undefined) break;
      // The head that does not fit holds back everything behind it: neither readers nor writers starve.
      if (!room.take(toMode(row))) return { ready, blocked: row };
      ready.push(row);
      ticket = Number(row.ticket);
    }
    return { ready, blocked: undefined };
  }

  /** The next whose process lives. Those known to have ended are taken out, which spares the others their silence. */
  #next(resource: Uint8Array, now: number, ticket: number, clears: boolean): Row | undefined {
    for (;;) {
      const row = this.#file.statements.nextInLine.get(resource, now, ticket);
      if (row === undefined || !clears || !this.hasEnded(row)) return row;
      this.#remove(Number(row.client));
    }
  }

  hasEnded(row: Row): boolean {
    return processHasEnded(row, this.#client);
  }

  waits(acquisitionId: string, now: number): boolean {
    return this.#file.statements.isWaiting.get(this.#client.id, acquisitionId, now) !== undefined;
  }

  enqueue(request: AcquireRequest, resource: Uint8Array, now: number): void {
    const { acquisitionId, mode, label } = request;
    this.#keepClient(now);
    this.#file.statements.enqueue.run(
      resource,
      this.#client.id,
      acquisitionId,
      ...modeColumns(mode),
      now,
      label ?? null,
    );
  }

  dequeue(acquisitionId: string): void {
    this.#file.statements.dequeue.run(this.#client.id, acquisitionId);
  }

  /** Keeps this client's waiters alive, clears those of dead ones, and gives the ids that the file has for this client. */
  heartbeat(now: number): Set<string> {
    this.#keepClient(now);
    this.dropDead(now);
    const rows = this.#file.statements.ownWaiters.all(this.#client.id);
    return new Set(rows.map((row) => String(row.acquisition_id)));
  }

  dropDead(now: number): void {
    this.#file.statements.dropDeadWaiters.run(now);
    this.#file.statements.dropDeadClients.run(now);
  }

  leave(): void {
    this.#remove(this.#client.id);
  }

  resize(resource: Uint8Array, limit: number): void {
    this.#file.statements.resizeWaiters.run(resource, limit);
  }

  #keepClient(now: number): void {
    const { id, pid, pidSpace } = this.#client;
    const { statements } = this.#file;
    const aliveUntil = now + toMicros(clientAliveMs);
    if (statements.keepClient.run(id, aliveUntil, now).changes === 1) return;
    // Silent for too long: what came in meanwhile may contradict its waiters (§15.7), so they do not come back to life.
    statements.leaveLine.run(id);
    statements.addClient.run(id, aliveUntil, pid, pidSpace);
  }

  #remove(client: number): void {
    this.#file.statements.leaveLine.run(client);
    this.#file.statements.dropClient.run(client);
  }
}

/** The mode of somebody who lives in a line. */
export function modeInLine({ ready, blocked }: Turns): LockMode | undefined {
  const row = ready[0] ?? blocked;
  return row && toMode(row);
}
