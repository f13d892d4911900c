import type { AcquireRequest, Capacity, LockMode } from '@locks/core/backend';
import { removeWakeFile } from '@locks/core/machine';
import { modeColumns, type SqliteRow, toMicros, toMode } from './columns.ts';
import type { LockFile } from './lock-file.ts';
import { processHasEnded, type SqliteClient } from './sqlite-client.ts';

export const HEARTBEAT_EVERY_MS = 500;
/** The longest silence of a process before its waiters are passed over. */
export const CLIENT_ALIVE_MS = 2_000;

export interface Turns {
  /** The waiters that can be granted now, in queue order. */
  readonly ready: readonly SqliteRow[];
  /** The first waiter that does not fit, which holds back all behind it. Unknown while the resource is held exclusively. */
  readonly blocked: SqliteRow | undefined;
}

/** The queues in the file, as one backend object reads and joins them. */
export class SqliteQueue {
  readonly #file: LockFile;
  readonly #client: SqliteClient;
  readonly #woken = new Set<number>();

  constructor(file: LockFile, client: SqliteClient) {
    this.#file = file;
    this.#client = client;
  }

  /**
   * Finds the waiters whose turn has come, from the head of the queue on: all that fit together into `capacity`, up to the
   * first that does not (docs/spec.md §15.2). Waiters of other processes count as if they held: their capacity is kept for
   * them.
   */
  turns(resource: Uint8Array, now: number, capacity: Capacity): Turns {
    return this.#walk(resource, now, capacity, true);
  }

  /** Finds the turns outside a write transaction: waiters of processes that have ended are not removed. */
  readTurns(resource: Uint8Array, now: number, capacity: Capacity): Turns {
    return this.#walk(resource, now, capacity, false);
  }

  #walk(resource: Uint8Array, now: number, capacity: Capacity, clears: boolean): Turns {
    const ready: SqliteRow[] = [];
    let ticket = 0;
    while (!capacity.isUsedUp) {
      const row = this.#next(resource, now, ticket, clears);
      if (row === undefined) break;
      // The head that does not fit holds back everything behind it: neither readers nor writers starve.
      if (!capacity.take(toMode(row))) return { ready, blocked: row };
      ready.push(row);
      ticket = Number(row.ticket);
    }
    return { ready, blocked: undefined };
  }

  /**
   * Finds the next waiter whose process lives. Waiters of processes that are known to have ended are removed, so that nobody
   * waits for their silence.
   */
  #next(resource: Uint8Array, now: number, ticket: number, clears: boolean): SqliteRow | undefined {
    for (;;) {
      const row = this.#file.statements.nextInQueue.get(resource, now, ticket);
      if (row === undefined || !clears || !this.hasEnded(row)) return row;
      this.#remove(Number(row.client));
    }
  }

  hasEnded(row: SqliteRow): boolean {
    return processHasEnded(row, this.#client);
  }

  /** Whether nobody waits, not even a process that is silent. */
  isEmpty(resource: Uint8Array): boolean {
    return this.#file.statements.anyWaiter.get(resource) === undefined;
  }

  /** Has the process of a waiter woken once the transaction is committed. */
  wake({ client }: SqliteRow): void {
    this.#woken.add(Number(client));
  }

  /** Has the process of the first waiter woken, to read when the hold before it ends. */
  wakeHead(resource: Uint8Array, now: number): void {
    const head = this.#file.statements.nextInQueue.get(resource, now, 0);
    if (head !== undefined) this.wake(head);
  }

  /** The clients to wake since the last call. */
  takeWoken(): readonly number[] {
    const woken = [...this.#woken];
    this.#woken.clear();
    return woken;
  }

  waits(acquisitionId: string, now: number): boolean {
    return this.#file.statements.isWaiting.get(this.#client.id, acquisitionId, now) !== undefined;
  }

  /** Whether as many wait as the request allows, and it is none of them. */
  hasReachedMaxWaiters(
    { acquisitionId, maxWaiters }: AcquireRequest,
    resource: Uint8Array,
    now: number,
  ): boolean {
    if (maxWaiters === undefined || this.waits(acquisitionId, now)) return false;
    return Number(this.#file.statements.queueLength.get(resource, now)?.waiting) >= maxWaiters;
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

  /** Keeps this client's waiters alive, clears those of dead clients, and returns the ids that the file has for this client. */
  heartbeat(now: number): Set<string> {
    this.#keepClient(now);
    this.dropDead(now);
    const rows = this.#file.statements.ownWaiters.all(this.#client.id);
    return new Set(rows.map((row) => String(row.acquisition_id)));
  }

  dropDead(now: number): void {
    const { statements, realPath } = this.#file;
    statements.dropDeadWaiters.run(now);
    for (const { client } of statements.dropDeadClients.all(now)) removeWakeFile(realPath, Number(client));
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
    const aliveUntil = now + toMicros(CLIENT_ALIVE_MS);
    if (statements.keepClient.run(id, aliveUntil, now).changes === 1) return;
    // The client was silent for too long: grants since then may be in conflict with its waiters (docs/spec.md §15.7), so
    // they are removed.
    statements.leaveQueue.run(id);
    statements.addClient.run(id, aliveUntil, pid, pidSpace);
  }

  #remove(client: number): void {
    const { statements, realPath } = this.#file;
    statements.leaveQueue.run(client);
    statements.dropClient.run(client);
    removeWakeFile(realPath, client);
  }
}

/** The mode of a waiter in the queue. */
export function modeInQueue({ ready, blocked }: Turns): LockMode | undefined {
  const row = ready[0] ?? blocked;
  return row && toMode(row);
}
