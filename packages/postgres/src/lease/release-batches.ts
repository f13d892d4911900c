import { type AcquireRequest, type Call, type Grant, PRIORITIES } from '@locks/core/backend';
import { type OutgoingStatement, rejectLate, type StatementResult } from '../driver/postgres-statements.ts';
import type { LeaseContext } from './attempt-queues.ts';
import { nameBytes } from './name-bytes.ts';
import { parseServed } from './replies.ts';
import { isUncontended } from './uncontended-statements.ts';

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
  readonly #context: LeaseContext;
  readonly #isAbandon: boolean;
  /** The acquisitions that are not sent yet, by name. */
  readonly #pending = new Map<string, Ending[]>();
  /** The names of the statements in flight. */
  readonly #busy = new Set<string>();
  #statements = 0;
  /** Whether a statement waits for its connection: it takes all acquisitions that come until then. */
  #isWaiting = false;

  constructor(kind: 'release' | 'abandon', context: LeaseContext) {
    this.#isAbandon = kind === 'abandon';
    this.#context = context;
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
    if (this.#isWaiting || (this.#isAbandon && this.#statements >= MAX_ABANDONS)) return;
    for (const name of this.#pending.keys()) {
      if (!this.#busy.has(name)) return void this.#work();
    }
  }

  async #work(): Promise<void> {
    this.#statements += 1;
    this.#isWaiting = true;
    let batch: readonly Ending[] = [];
    let isPlain = false;
    try {
      const priority = this.#isAbandon ? PRIORITIES.abandon : PRIORITIES.holder;
      const result = await this.#context.send(() => {
        batch = this.#take();
        this.#isWaiting = false;
        this.#start();
        if (!isFilled(batch)) return undefined;
        isPlain =
          batch.length === 1 && batch[0].isUncontended && this.#context.mayBeUncontended(batch[0].request);
        return this.#statement(batch, isPlain);
      }, priority);
      if (result !== undefined && isFilled(batch)) this.#answered(batch, result, isPlain);
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
    this.#statements -= 1;
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

  #statement(batch: Batch, isPlain: boolean): OutgoingStatement {
    const { sql, waiters } = this.#context;
    const [first] = batch;
    const sentAt = first.call.now();
    const leftMs = Math.min(ANSWER_MS, Math.max(...batch.map(endOf)) - sentAt);
    const names = batch.map(({ request }) => nameBytes(request.resource));
    const ids = batch.map(({ request }) => request.acquisitionId);
    if (isPlain) return { text: sql.plainDelete, values: [names[0], ids[0]], sentAt, leftMs };
    const isOne = batch.length === 1 && !this.#isAbandon;
    const ending = isOne ? [names[0], ids[0]] : [names, ids];
    return {
      text: isOne ? sql.release : sql.releaseAll,
      values: [...ending, waiters.client],
      sentAt,
      leftMs,
    };
  }

  #answered(batch: Batch, { rows, count, sentAt }: StatementResult, isPlain: boolean): void {
    const [first] = batch;
    if (!isPlain) {
      const { first: letters, handOffs } = parseServed(rows[0]?.[0] ?? '');
      this.#context.waiters.handOffAll(handOffs, () => first.call.now() - sentAt);
      for (const [at, { resolve }] of batch.entries()) resolve(letters[at] === 'r');
    } else if (count === 1) first.resolve(true);
    else {
      // Somebody else uses the name, or the lease is over: the function is called next.
      first.isUncontended = false;
      const { resource } = first.request;
      this.#pending.set(resource, [first, ...(this.#pending.get(resource) ?? [])]);
    }
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
