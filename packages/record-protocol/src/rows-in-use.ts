import { type AcquireRequest, type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { isCrowd, pauseBefore } from './back-off.ts';
import { freshVersion } from './fresh-version.ts';
import { type LockRow, NO_ROW } from './lock-row.ts';
import {
  isOvertaken,
  type Living,
  type LockTable,
  type RowTaken,
  type RowWritten,
  type Snapshot,
} from './lock-table.ts';
import type { DecisionContext, RowDecision } from './row-decision.ts';
import { areNewcomers, type RowStep, RowWriter } from './row-writer.ts';
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
export class RowsInUse {
  readonly #table: LockTable;
  readonly #client: string;
  readonly #writers = new Map<string, RowWriter>();
  /** The resources that nobody here holds or waits for, and that are remembered: the next acquire needs no read. */
  readonly #unused = new Set<string>();
  #hooks: WaiterHooks | undefined;
  /** The clients that were alive at the table's time `now`. */
  #lastHeard = { alive: new Set<string>() as Living, now: 0, learnedAt: -Infinity };

  constructor(table: LockTable, client: string) {
    this.#table = table;
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
    const table = this.#table;
    return {
      client,
      isAlive: (other) => other === client || this.#lastHeard.alive.has(other),
      // Nobody can deliver a grant to another process, so only waiters of this one are served: the others take free capacity when
      // they poll.
      serves: (other) => other === client,
      maxStateBytes: table.maxStateBytes,
      ...(table.now !== undefined && { now: () => (table.now as () => number)() }),
      ...(table.tokenFloor !== undefined && { tokenFloor: () => (table.tokenFloor as () => number)() }),
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

  /** Prepares the write of a decision. Returns a function to call when the write succeeded. */
  prepare(writer: RowWriter, decision: RowDecision, version: number): (written?: RowWritten) => void {
    const deliveries = decision.handedOff.map((hold) => this.#hooks?.prepareHandOff(writer, hold));
    return (written) => {
      // Without an answer the writer has read its own write.
      if (written !== undefined)
        writer.learn(decision.written(version, written), this.#answeredAt(written.at));
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
    if (this.#unused.size <= this.#table.unusedKept) return;
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
        await this.#round(writer, batch);
        this.#hooks?.learned(writer);
      } catch (error) {
        writer.known = undefined;
        for (const step of batch) step.fail(error);
      }
    }
    writer.busy = false;
    this.#closeIfIdle(writer);
  }

  /** Who was found dead may have gone on since, and wait again: nobody takes it out of a queue who has not looked of late. */
  async #lookAtTheDead({ resource, known }: RowWriter, limit: TimeLimit): Promise<void> {
    const { isAlive } = this.context;
    if (this.#table.lookAt !== undefined && known?.waiters.some(({ client }) => !isAlive(client)) === true)
      await this.#table.lookAt(resource, 'dead', limit);
  }

  async #round(writer: RowWriter, batch: RowStep[]): Promise<void> {
    // Where nobody holds and others wait, one of them has written by now.
    let mustRead = areNewcomers(batch) && writer.isOvertaken;
    let isFresh = false;
    let refused = false;
    let broke = false;
    let ambiguous = false;
    let hasLooked = false;
    let conflicts = 0;
    let wasRefused = false;
    /** The write that may have taken place. */
    let sent: SentWrite | undefined;
    for (let tries = 1; batch.length > 0; tries += 1) {
      // What was found before a pause is stale after it.
      if (tries > 1 && (await pauseBefore({ tries, conflicts, wasRefused }, batch, writer))) isFresh = false;
      wasRefused = false;
      const limit = limitOf(writer, batch);
      try {
        if (writer.known === undefined && !refused) {
          const taken = await this.#takeOne(writer, batch, limit);
          refused = taken?.status !== 'taken';
          if (taken?.status === 'conflict') {
            conflicts += 1;
            wasRefused = true;
          }
          isFresh = taken?.status === 'conflict' && this.#learnFound(writer, taken.found);
          continue;
        }
        // The steps that came while the row was read, or found changed, wait for the next round: it is not fresh for them.
        if (!isFresh) for (const step of writer.pending.splice(0)) batch.push(step);
        const askedAt = batch.map(({ call }) => call.now());
        if (!isFresh && (mustRead || writer.known === undefined)) {
          // The heartbeat is sent along if a waiter is likely to be added, which needs it first.
          const beaten = batch.some(({ enqueues }) => enqueues) ? this.#hooks?.beat(limit) : undefined;
          await Promise.all([this.#read(writer, limit), beaten]);
          isFresh = true;
        }
        const fresh: boolean = isFresh;
        mustRead = true;
        isFresh = false;
        if (sent !== undefined && writer.known?.version === sent.version) {
          // The write took place, and its answer was lost.
          finishSent(sent, batch);
          sent = undefined;
          isFresh = true;
          continue;
        }
        batch.forEach((step, index) => {
          step.sentAt = askedAt[index] as number;
        });
        await this.#lookAtTheDead(writer, limit);
        const decision = writer.decide(this.context);
        for (const step of batch) step.decide(decision, ambiguous);
        // The known row may be stale: only a write proves that it was not.
        if (!fresh && (decision.needsFresh || !decision.changed || !decision.isWhole)) continue;
        if (decision.dependsOn !== undefined && !hasLooked && this.#table.lookAt !== undefined) {
          // Waiters whose processes have died are in nobody's way, and take no place in a queue that is full.
          hasLooked = true;
          await this.#table.lookAt(writer.resource, decision.dependsOn, limit);
          isFresh = fresh;
          continue;
        }
        if (decision.changed || decision.hasEnded) {
          if (decision.version === 0 && !this.#table.canCreate) {
            // The row was deleted after it had been found taken: the resource is taken in one statement again.
            writer.known = undefined;
            refused = false;
            continue;
          }
          if (decision.hasEnqueued) await this.#hooks?.beat(limit);
          const version = freshVersion();
          const written = this.prepare(writer, decision, version);
          sent = { version, written, steps: [...batch] };
          ambiguous = true;
          const sentAt = performance.now();
          const isPatient = areNewcomers(batch) && isCrowd(writer.known, conflicts + 1);
          const write = { name: writer.resource, decision, version, isPatient };
          const outcome = await this.#table.write(write, limit);
          const isWritten = outcome.status === 'written';
          if (!isWritten) writer.sawForeignWrite();
          writer.wrote(performance.now() - sentAt, isWritten, isWritten && !fresh);
          if (outcome.status === 'conflict') {
            conflicts += 1;
            wasRefused = true;
            isFresh = this.#learnFound(writer, outcome.found);
            if (outcome.earlier === 'written') finishSent(sent, batch);
            ambiguous = broke || outcome.earlier !== undefined;
            // A client that repeats a request by itself may have met its own write, where nobody has looked.
            if (isFresh) sent = undefined;
            continue;
          }
          ambiguous = broke;
          sent = undefined;
          written(outcome);
        }
        for (const step of batch.splice(0)) step.finish();
      } catch (error) {
        // The connection was closed while idle in the pool, or broke now. Every step may be repeated.
        if (broke || !this.#table.isBroken(error)) throw error;
        broke = true;
        refused = true;
        mustRead = true;
        isFresh = false;
      }
    }
  }

  /**
   * Takes the resource for one step in one request; resolves with `undefined` if no step may. An abandoned acquisition takes
   * nothing.
   */
  async #takeOne(writer: RowWriter, batch: RowStep[], limit: TimeLimit): Promise<RowTaken | undefined> {
    const index = batch.findIndex(({ take }) => take && !writer.abandoned.has(take.acquisitionId));
    const step = batch[index];
    if (step?.take === undefined) return undefined;
    step.sentAt = step.call.now();
    const taken = await step.take.run(this.#table, limit);
    if (taken.status === 'taken') {
      batch.splice(index, 1);
      writer.learn(taken.row, this.#answeredAt(taken.at));
      step.finish();
    }
    return taken;
  }

  /** The table's time at which the answer to a write came: the leases in the row may count from earlier. */
  #answeredAt(at: number): number {
    return this.#table.now?.() ?? at;
  }

  /**
   * Learns the row that a refused write has found; returns whether there was one.
   *
   * @throws MalformedRecordError
   */
  #learnFound(writer: RowWriter, found: Snapshot | undefined): boolean {
    if (found === undefined) return false;
    this.learnAlive(found);
    const row = found.rows.get(writer.resource) ?? NO_ROW;
    writer.learn(row, found.now);
    if (row.malformed !== undefined) throw row.malformed;
    return true;
  }

  async #read(writer: RowWriter, limit: TimeLimit): Promise<void> {
    this.#learnFound(writer, await this.#table.snapshot([writer.resource], [], limit));
  }
}

/** A write whose answer may be lost, and the steps that were decided with it. */
interface SentWrite {
  readonly version: number;
  readonly written: () => void;
  readonly steps: readonly RowStep[];
}

/** The write took place. Steps that have come since were not decided with it. */
function finishSent({ steps, written }: SentWrite, batch: RowStep[]): void {
  written();
  for (const step of steps) {
    batch.splice(batch.indexOf(step), 1);
    step.finish();
  }
}

/** The time limit of a batch: it ends when the last of its calls does. */
function limitOf({ urgency }: RowWriter, batch: readonly RowStep[]): TimeLimit {
  const now = (): number => performance.now();
  const left = batch.reduce((most, { call }) => Math.max(most, call.deadline - call.now()), -Infinity);
  return { now, deadline: now() + left, urgency };
}
