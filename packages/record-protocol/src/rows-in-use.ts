import { type AcquireRequest, type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { freshVersion } from './fresh-version.ts';
import type { LockRow } from './lock-row.ts';
import {
  answeredAt,
  isOvertaken,
  type Living,
  type LockTable,
  type RowWritten,
  type Snapshot,
} from './lock-table.ts';
import type { DecisionContext, RowDecision } from './row-decision.ts';
import { Round, type RoundContext } from './round.ts';
import { type RowStep, RowWriter } from './row-writer.ts';
import type { TimeLimit } from './time-limit.ts';

/** The hooks by which the rows use the waiters of this process. */
export interface WaiterHooks {
  /**
   * Called before a write that grants to a waiter: the lease is counted from here. Returns a function to call when the write
   * succeeded.
   */
  prepareHandOff(writer: RowWriter, hold: HoldRecord): () => void;
  /** Called before a waiter is written: sends the heartbeat, since the process must be known to live. */
  beat(limit: TimeLimit): Promise<void>;
  /** Called when a writer has learned the present state of its row. */
  learned(writer: RowWriter): void;
}

/** What a step does beside its decision. */
interface StepOptions<T> {
  /** Called once, with the last result of the decision. */
  finish?(result: T, writer: RowWriter, sentAt: number): void;
  /** Takes the resource in one request where its row is unknown. */
  readonly take?:
    | { readonly request: AcquireRequest; isWanted(): boolean; granted(token: number, sentAt: number): T }
    | undefined;
  /** Whether the step may add a waiter. Default: no. */
  readonly enqueues?: boolean;
  /** Default: that of a holder; of an acquire, where the step may take. */
  readonly priority?: Priority;
}

const FORGET_AFTER_MS = 60_000;

/** The rows that this process uses now. Steps on one row run one after another; steps that come together are one write. */
export class RowsInUse implements RoundContext {
  readonly table: LockTable;
  readonly #client: string;
  readonly #writers = new Map<string, RowWriter>();
  /** The resources that nobody here holds or waits for, and that are remembered: the next acquire needs no read. */
  readonly #unused = new Set<string>();
  #hooks: WaiterHooks | undefined;
  /** The clients that were alive at the table's time `now`. */
  #lastHeard = { alive: new Set<string>() as Living, now: 0, learnedAt: -Infinity };

  constructor(table: LockTable, client: string) {
    this.table = table;
    this.#client = client;
  }

  connect(hooks: WaiterHooks): void {
    this.#hooks = hooks;
  }

  learnAlive(snapshot: Snapshot): void {
    const { now, learnedAt } = this.#lastHeard;
    if (isOvertaken(snapshot, now, learnedAt)) return;
    this.#lastHeard = { alive: snapshot.alive, now: snapshot.now, learnedAt: performance.now() };
  }

  get context(): DecisionContext {
    const client = this.#client;
    const { table } = this;
    return {
      client,
      isAlive: (other) => other === client || this.#lastHeard.alive.has(other),
      // Nobody can deliver a grant to another process, so only waiters of this one are served: the others take free capacity when
      // they poll.
      serves: (other) => other === client,
      maxStateBytes: table.maxStateBytes,
      now: table.now?.bind(table),
      tokenFloor: table.tokenFloor?.bind(table),
    };
  }

  get(resource: string): RowWriter | undefined {
    return this.#writers.get(resource);
  }

  /** Submits a step. `decide` may run several times. */
  submit<T>(
    resource: string,
    call: Call,
    decide: (decision: RowDecision, step: { readonly sentAt: number; readonly ambiguous: boolean }) => T,
    {
      finish,
      take,
      enqueues = false,
      priority = take === undefined ? PRIORITIES.holder : PRIORITIES.acquire,
    }: StepOptions<T> = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const writer = this.#open(resource);
      let result: T;
      const step: RowStep = {
        call,
        sentAt: call.now(),
        priority,
        enqueues,
        take: take && {
          acquisitionId: take.request.acquisitionId,
          async run(table, limit) {
            const { request } = take;
            const taken = await table.take({ request, version: freshVersion() }, limit, () =>
              take.isWanted(),
            );
            if (taken.status === 'taken') result = take.granted(taken.token, step.sentAt);
            return taken;
          },
        },
        decide: (decision, ambiguous) => {
          result = decide(decision, { sentAt: step.sentAt, ambiguous });
        },
        finish: () => {
          finish?.(result, writer, step.sentAt);
          resolve(result);
        },
        fail: (error) => {
          reject(error);
        },
      };
      writer.pending.push(step);
      writer.rise(priority);
      if (!writer.busy) void this.#work(writer);
      else if (!enqueues) writer.endPause?.();
    });
  }

  /** Records a resource that was acquired in another way than by `submit`. */
  adopt({ resource, acquisitionId }: AcquireRequest, row: LockRow, at: number): void {
    const writer = this.#open(resource);
    writer.own.add(acquisitionId);
    if (!writer.busy) writer.learn(row, at);
  }

  /** Locks the writer of a resource if it is idle, and returns it: it does nothing until `unlock`. */
  tryLock(resource: string): RowWriter | undefined {
    const writer = this.#open(resource);
    if (writer.busy) return undefined;
    writer.busy = true;
    return writer;
  }

  unlock(writer: RowWriter): void {
    writer.busy = false;
    if (writer.pending.length > 0) void this.#work(writer);
    else this.#closeIfIdle(writer);
  }

  async beat(limit: TimeLimit): Promise<void> {
    await this.#hooks?.beat(limit);
  }

  prepare(
    writer: RowWriter,
    decision: RowDecision,
    version: number,
  ): (written: RowWritten | undefined) => void {
    const deliveries = decision.handedOff.map((hold) => this.#hooks?.prepareHandOff(writer, hold));
    return (written) => {
      // Without an answer the writer has read its own write.
      if (written !== undefined)
        writer.learn(decision.written(version, written), answeredAt(this.table, written.at));
      for (const deliver of deliveries) deliver?.();
    };
  }

  /** Forgets rows that were not used for a while, since nobody releases an expired lease. Returns how many rows are left. */
  forgetUnused(): number {
    const before = performance.now() - FORGET_AFTER_MS;
    for (const { learnedAt, busy, known, resource } of this.#writers.values()) {
      const hasWaiters = known?.waiters.some(({ client }) => client === this.#client) ?? false;
      if (learnedAt >= before || busy || hasWaiters) continue;
      this.#writers.delete(resource);
      this.#unused.delete(resource);
    }
    return this.#writers.size;
  }

  #open(resource: string): RowWriter {
    let writer = this.#writers.get(resource);
    if (writer === undefined) {
      writer = new RowWriter(resource);
      this.#writers.set(resource, writer);
    }
    return writer;
  }

  #closeIfIdle(writer: RowWriter): void {
    writer.prune();
    const { resource, own } = writer;
    this.#unused.delete(resource);
    if (own.size > 0) return;
    this.#unused.add(resource);
    if (this.#unused.size <= this.table.unusedKept) return;
    const [oldest] = this.#unused as Iterable<string>;
    if (oldest === undefined) return;
    this.#unused.delete(oldest);
    // Somebody may use it again by now.
    const oldestWriter = this.#writers.get(oldest);
    if (oldestWriter?.own.size === 0 && !oldestWriter.busy) this.#writers.delete(oldest);
  }

  async #work(writer: RowWriter): Promise<void> {
    writer.busy = true;
    while (writer.pending.length > 0) {
      if (writer.hasTime) await writer.gather();
      await writer.giveWay();
      const batch = writer.pending.splice(0);
      writer.urgency.priority = PRIORITIES.acquire;
      for (const { priority } of batch) writer.rise(priority);
      try {
        await new Round(this, writer, batch).run();
        this.#hooks?.learned(writer);
      } catch (error) {
        writer.known = undefined;
        for (const step of batch) step.fail(error);
      }
    }
    writer.busy = false;
    this.#closeIfIdle(writer);
  }
}
