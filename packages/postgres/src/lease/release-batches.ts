import { type AcquireRequest, type Call, type Grant, PRIORITIES } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';
import { type FreeConnection, rejectLate, type StatementResult } from '../driver/postgres-statements.ts';
import type { LeaseStatements } from './lease-statements.ts';
import type { NotifiedWaiters } from './notified-waiters.ts';
import { nameBytes } from './name-bytes.ts';
import { parseServed } from './replies.ts';
import { isUncontended, mayBeUncontended } from './uncontended-statements.ts';

/** The most acquisitions that one statement ends: it keeps their rows locked, and answers all of them at its end. */
const MAX_ACQUISITIONS = 500;
/** The longest wait of a statement for its answer. */
const ANSWER_MS = 5_000;
/** The most abandons in flight: several, since one of them may wait for a row that somebody keeps locked. */
const MAX_ABANDONS = 3;

interface Ending {
  readonly request: AcquireRequest;
  readonly call: Call;
  /** Whether the acquisition's end is sent however late a connection comes. */
  readonly isUnhurried: boolean;
  /** Whether a plain delete may end the acquisition. */
  isUncontended: boolean;
  /** @param wasHeld - whether the acquisition had a lease that was live */
  resolve(wasHeld: boolean): void;
  reject(error: unknown): void;
}

/**
 * Releases acquisitions, or abandons them: all that wait for a connection together in one statement, since thousands may end
 * in the same moment. One statement of a name is in flight at a time: another would only wait for the same row.
 */
export class ReleaseBatches {
  readonly #statements: LeaseStatements;
  readonly #waiters: NotifiedWaiters;
  readonly #isAbandon: boolean;
  /** The acquisitions that are not sent yet, by name. */
  readonly #pending = new Map<string, Ending[]>();
  /** The names of the statements in flight. */
  readonly #busy = new Set<string>();
  #inFlight = 0;
  /** Whether a statement waits for its connection: it takes all acquisitions that come until then. */
  #isWaiting = false;

  constructor(kind: 'release' | 'abandon', statements: LeaseStatements, waiters: NotifiedWaiters) {
    this.#isAbandon = kind === 'abandon';
    this.#statements = statements;
    this.#waiters = waiters;
  }

  async release(grant: Grant, call: Call): Promise<boolean> {
    // A release that is requested at its deadline is sent all the same.
    return await this.#add(grant.request, call, call.now() >= call.deadline, isUncontended(grant));
  }

  /**
   * Abandons an acquisition. Waits for longer than the caller may: the heartbeat finds a queue entry that is left behind only
   * after 10 s.
   */
  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    await this.#add(request, call, true, false);
  }

  #add(request: AcquireRequest, call: Call, isUnhurried: boolean, isUncontended: boolean): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const ending = { request, call, isUnhurried, isUncontended, resolve, reject };
      const sameName = this.#pending.get(request.resource);
      if (sameName === undefined) this.#pending.set(request.resource, [ending]);
      else sameName.push(ending);
      this.#start();
    });
  }

  #start(): void {
    if (this.#isWaiting || (this.#isAbandon && this.#inFlight >= MAX_ABANDONS)) return;
    for (const name of this.#pending.keys()) {
      if (!this.#busy.has(name)) return void this.#work();
    }
  }

  async #work(): Promise<void> {
    this.#inFlight += 1;
    this.#isWaiting = true;
    let batch: readonly Ending[] = [];
    try {
      const priority = this.#isAbandon ? PRIORITIES.abandon : PRIORITIES.holder;
      const connection = await this.#statements.connection(priority);
      batch = this.#take();
      this.#isWaiting = false;
      this.#start();
      if (isFilled(batch)) await this.#send(connection, batch);
      else connection.giveBack();
    } catch (error) {
      if (batch.length === 0) {
        // No connection could be made: its error is the outcome of all pending acquisitions.
        this.#isWaiting = false;
        batch = [...this.#pending.values()].flat();
        this.#pending.clear();
      }
      for (const { reject } of batch) reject(error);
    }
    for (const { request } of batch) this.#busy.delete(request.resource);
    this.#inFlight -= 1;
    this.#start();
  }

  #take(): readonly Ending[] {
    const batch: Ending[] = [];
    for (const [name, endings] of this.#pending) {
      if (this.#busy.has(name)) continue;
      for (const ending of endings.splice(0, MAX_ACQUISITIONS - batch.length)) {
        if (ending.call.now() < endOf(ending)) batch.push(ending);
        else rejectLate(ending.reject);
      }
      if (endings.length === 0) this.#pending.delete(name);
      if (batch.length === MAX_ACQUISITIONS) break;
    }
    for (const { request } of batch) this.#busy.add(request.resource);
    return batch;
  }

  async #send(connection: FreeConnection, batch: Batch): Promise<void> {
    const [first] = batch;
    const names = batch.map(({ request }) => nameBytes(request.resource));
    const ids = batch.map(({ request }) => request.acquisitionId);
    const send = (text: string, values: readonly Value[]): Promise<StatementResult> => {
      const sentAt = first.call.now();
      const leftMs = Math.min(ANSWER_MS, Math.max(...batch.map(endOf)) - sentAt);
      return this.#statements.send(connection, { text, values, sentAt, leftMs });
    };
    const { sql } = this.#statements;
    const isOne = batch.length === 1 && !this.#isAbandon;
    if (isOne && first.isUncontended && mayBeUncontended(first.request, this.#statements, this.#waiters)) {
      const { count } = await send(sql.plainDelete, [names[0], ids[0]]);
      if (count === 1) return first.resolve(true);
      // Somebody else uses the name, or the lease is over: the function is called next.
      first.isUncontended = false;
      const { resource } = first.request;
      this.#pending.set(resource, [first, ...(this.#pending.get(resource) ?? [])]);
      return;
    }
    const { client } = this.#waiters;
    const { rows, sentAt } = isOne
      ? await send(sql.release, [names[0], ids[0], client])
      : await send(sql.releaseAll, [names, ids, client]);
    const { first: letters, handOffs } = parseServed(rows[0]?.[0] ?? '');
    this.#waiters.handOffAll(handOffs, () => first.call.now() - sentAt);
    for (const [at, { resolve }] of batch.entries()) resolve(letters[at] === 'r');
  }
}

type Batch = readonly [Ending, ...Ending[]];

function isFilled(batch: readonly Ending[]): batch is Batch {
  return batch.length > 0;
}

/** The time after which the acquisition's end is not sent, on the caller's clock: a stall of the event loop moves the deadline of a call. */
function endOf({ isUnhurried, call }: Ending): number {
  return isUnhurried ? Number.POSITIVE_INFINITY : call.deadline;
}
