import { type AcquireRequest, type Call, PRIORITIES } from '@locks/core/backend';
import type { MakeStatement, OutgoingStatement, StatementResult } from '../pool/postgres-statements.ts';
import type { PostgresLocalWaiters } from './local-waiters.ts';
import { nameBytes } from './name-bytes.ts';
import { parseHandOffs } from './replies.ts';

const MAX_ABANDONS = 2_000;
/** Several statements at a time: one of them may wait for a row that somebody keeps locked. */
const MAX_STATEMENTS = 3;
/** Longer than the caller may wait: the heartbeat finds a queue entry that is left behind only after 10 s. */
const ANSWER_MS = 5_000;

interface Abandon {
  readonly request: AcquireRequest;
  readonly call: Call;
  resolve(): void;
  reject(error: unknown): void;
}

type Send = (
  make: MakeStatement,
  priority: typeof PRIORITIES.abandon,
) => Promise<StatementResult | undefined>;

/** Abandons many acquisitions in one statement: thousands of waiters may end in the same moment. */
export class AbandonBatches {
  readonly #sql: string;
  readonly #waiters: PostgresLocalWaiters;
  readonly #send: Send;
  /** The abandons that are not sent yet, by name. */
  readonly #pending = new Map<string, Abandon[]>();
  /** The names of the statements under way: another statement would only wait for the same rows. */
  readonly #busy = new Set<string>();
  #statements = 0;
  /** Whether a statement waits for its connection: it takes all abandons that come until then. */
  #isWaiting = false;

  constructor(sql: string, waiters: PostgresLocalWaiters, send: Send) {
    this.#sql = sql;
    this.#waiters = waiters;
    this.#send = send;
  }

  abandon(request: AcquireRequest, call: Call): Promise<void> {
    return new Promise((resolve, reject) => {
      const abandon = { request, call, resolve, reject };
      const sameName = this.#pending.get(request.resource);
      if (sameName === undefined) this.#pending.set(request.resource, [abandon]);
      else sameName.push(abandon);
      this.#start();
    });
  }

  #start(): void {
    if (this.#isWaiting || this.#statements >= MAX_STATEMENTS) return;
    for (const name of this.#pending.keys()) {
      if (!this.#busy.has(name)) return void this.#work();
    }
  }

  async #work(): Promise<void> {
    this.#statements += 1;
    this.#isWaiting = true;
    let batch: readonly Abandon[] = [];
    try {
      const result = await this.#send(() => {
        batch = this.#take();
        this.#isWaiting = false;
        this.#start();
        return isFilled(batch) ? this.#statement(batch) : undefined;
      }, PRIORITIES.abandon);
      const [first] = batch;
      if (result !== undefined && first !== undefined) {
        const handOffs = parseHandOffs(result.rows[0]?.[0] ?? '');
        this.#waiters.handOffAll(handOffs, () => first.call.now() - result.sentAt);
      }
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (batch.length === 0) {
        // No connection could be made: that error is the outcome of all pending abandons.
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

  #take(): readonly Abandon[] {
    const batch: Abandon[] = [];
    for (const [name, abandons] of this.#pending) {
      if (this.#busy.has(name)) continue;
      for (const abandon of abandons.splice(0, MAX_ABANDONS - batch.length)) batch.push(abandon);
      if (abandons.length === 0) this.#pending.delete(name);
      if (batch.length === MAX_ABANDONS) break;
    }
    for (const { request } of batch) this.#busy.add(request.resource);
    return batch;
  }

  #statement(batch: readonly [Abandon, ...Abandon[]]): OutgoingStatement {
    const values = [
      batch.map(({ request }) => nameBytes(request.resource)),
      batch.map(({ request }) => request.acquisitionId),
      this.#waiters.client,
    ];
    return { text: this.#sql, values, sentAt: batch[0].call.now(), leftMs: ANSWER_MS };
  }
}

function isFilled<T>(list: readonly T[]): list is readonly [T, ...T[]] {
  return list.length > 0;
}
