import { isCrowd, pauseBefore } from './back-off.ts';
import { freshVersion } from './fresh-version.ts';
import { NO_ROW } from './lock-row.ts';
import {
  answeredAt,
  type LockTable,
  type RowConflict,
  type RowWritten,
  type Snapshot,
} from './lock-table.ts';
import type { DecisionContext, RowDecision } from './row-decision.ts';
import { isReliable, type RowKnowledge, type SentRowWrite, tookPlace } from './row-knowledge.ts';
import { areNewcomers, type RowStep, type RowWriter } from './row-writer.ts';
import type { TimeLimit } from './time-limit.ts';

/** What a round uses of the other rows and of the waiters of this process. */
export interface RoundContext {
  readonly table: LockTable;
  /** What a decision needs besides the row, at present. */
  readonly context: DecisionContext;
  /** Sends the heartbeat of this process, if one is due: a client that waits must be known to live. */
  beat(limit: TimeLimit): Promise<void>;
  /** Records which clients live. */
  learnAlive(snapshot: Snapshot): void;
  /**
   * Prepares the write of a decision. The function that it returns is called once the write took place, with its outcome; `undefined`
   * where the row was read and has the write.
   */
  prepare(
    writer: RowWriter,
    decision: RowDecision,
    version: number,
  ): (written: RowWritten | undefined) => void;
}

/**
 * One round of a row: the steps that came together are decided on the row, again and again until what was decided holds. Each try
 * begins with what is known of the row, and ends with what is known then:
 *
 * | known | what the try does | known afterwards |
 * |---|---|---|
 * | `unknown` | takes the resource for one step that may; else as with `stale` | `remembered`; refused: `fresh` where it was told the row; else `stale` |
 * | `remembered` | decides, and writes | the end; refused: `fresh` or `stale`; not to be relied on: `stale` |
 * | `stale` | reads, and goes on as with `fresh` | as with `fresh` |
 * | `fresh` | decides, and writes where something changes | the end; refused: `fresh` or `stale`; the row is gone: `unknown` |
 *
 * A pause makes what was `fresh` `stale`, and so does a connection that breaks, once.
 */
export class Round {
  readonly #rows: RoundContext;
  readonly #table: LockTable;
  readonly #writer: RowWriter;
  /** The steps that are not finished. */
  readonly #batch: RowStep[];
  #knowledge: RowKnowledge;
  /** A write whose answer did not come, or may be that to a later sending of it. */
  #sent: SentRowWrite | undefined;
  /** Whether an earlier write of this round may have taken place, and others may have written over it. */
  #isAmbiguous = false;
  #conflicts = 0;
  #wasRefused = false;
  #hasLooked = false;
  #hasBroken = false;

  constructor(rows: RoundContext, writer: RowWriter, batch: RowStep[]) {
    this.#rows = rows;
    this.#table = rows.table;
    this.#writer = writer;
    this.#batch = batch;
    if (writer.known === undefined) this.#knowledge = 'unknown';
    // Where nobody holds and others wait, one of them has written by now.
    else this.#knowledge = areNewcomers(batch) && writer.isOvertaken ? 'stale' : 'remembered';
  }

  /**
   * Finishes all steps of the batch, and those that join it.
   *
   * @throws the error of the store, where it gave no answer; MalformedRecordError; NoAnswerError where the row changes all the time
   */
  async run(): Promise<void> {
    for (let tries = 1; this.#batch.length > 0; tries += 1) {
      if (tries > 1) await this.#pause(tries);
      try {
        this.#knowledge = await this.#try(limitOf(this.#writer, this.#batch));
      } catch (error) {
        // The connection was closed while idle in the pool, or broke now. Every step may be repeated.
        if (this.#hasBroken || !this.#table.isBroken(error)) throw error;
        this.#hasBroken = true;
        this.#knowledge = 'stale';
      }
    }
  }

  async #pause(tries: number): Promise<void> {
    const passed = { tries, conflicts: this.#conflicts, wasRefused: this.#wasRefused };
    this.#wasRefused = false;
    const hasPaused = await pauseBefore(passed, this.#batch, this.#writer);
    if (hasPaused && this.#knowledge === 'fresh') this.#knowledge = 'stale';
  }

  async #try(limit: TimeLimit): Promise<RowKnowledge> {
    switch (this.#knowledge) {
      case 'unknown': {
        // An abandoned acquisition takes nothing.
        const { abandoned } = this.#writer;
        const taker = this.#batch.find(({ take }) => take && !abandoned.has(take.acquisitionId));
        return taker === undefined ? await this.#readAndDecide(limit) : await this.#take(taker, limit);
      }
      case 'remembered':
        this.#join();
        return await this.#decide('remembered', this.#askedAt(), limit);
      case 'stale':
        return await this.#readAndDecide(limit);
      case 'fresh':
        return await this.#decide('fresh', this.#askedAt(), limit);
      default:
        return this.#knowledge satisfies never;
    }
  }

  /** The steps that came while the row was read, or found changed, wait for the next round: the row is not fresh for them. */
  #join(): void {
    this.#batch.push(...this.#writer.pending.splice(0));
  }

  #askedAt(): readonly number[] {
    return this.#batch.map(({ call }) => call.now());
  }

  /** Takes the resource for one step in one request. */
  async #take(step: RowStep, limit: TimeLimit): Promise<RowKnowledge> {
    step.sentAt = step.call.now();
    const taken = await (step.take as NonNullable<RowStep['take']>).run(this.#table, limit);
    switch (taken.status) {
      case 'taken':
        this.#writer.learn(taken.row, answeredAt(this.#table, taken.at));
        this.#finish(step);
        return 'remembered';
      case 'conflict':
        return this.#refused(taken);
      default:
        return taken satisfies never;
    }
  }

  async #readAndDecide(limit: TimeLimit): Promise<RowKnowledge> {
    this.#join();
    const askedAt = this.#askedAt();
    // The heartbeat is sent along if a waiter is likely to be added, which needs it first.
    const beaten = this.#batch.some(({ enqueues }) => enqueues) ? this.#rows.beat(limit) : undefined;
    const snapshot = this.#table.snapshot([this.#writer.resource], [], limit);
    await Promise.all([snapshot.then((found) => this.#learnFound(found)), beaten]);
    if (tookPlace(this.#sent, this.#writer.known)) return this.#finishSent();
    return await this.#decide('fresh', askedAt, limit);
  }

  /** Decides all steps, and answers them where no write is needed. */
  async #decide(
    knowledge: RowKnowledge,
    askedAt: readonly number[],
    limit: TimeLimit,
  ): Promise<RowKnowledge> {
    for (const [index, step] of this.#batch.entries()) step.sentAt = askedAt[index] as number;
    await this.#lookAtTheDead(limit);
    const decision = this.#writer.decide(this.#rows.context);
    for (const step of this.#batch) step.decide(decision, this.#isAmbiguous);
    if (!isReliable(knowledge, decision)) return 'stale';
    if (decision.dependsOn !== undefined && !this.#hasLooked && this.#table.lookAt !== undefined) {
      // Waiters whose processes have died are in nobody's way, and take no place in a queue that is full.
      this.#hasLooked = true;
      await this.#table.lookAt(this.#writer.resource, decision.dependsOn, limit);
      return knowledge === 'fresh' ? 'fresh' : 'stale';
    }
    if (decision.changed || decision.hasEnded) return await this.#write(decision, knowledge, limit);
    return this.#finishAll();
  }

  /** Who was found dead may have gone on since, and wait again: nobody takes it out of a queue who has not looked of late. */
  async #lookAtTheDead(limit: TimeLimit): Promise<void> {
    const { resource, known } = this.#writer;
    const { isAlive } = this.#rows.context;
    if (this.#table.lookAt !== undefined && known?.waiters.some(({ client }) => !isAlive(client)) === true)
      await this.#table.lookAt(resource, 'dead', limit);
  }

  async #write(decision: RowDecision, knowledge: RowKnowledge, limit: TimeLimit): Promise<RowKnowledge> {
    const writer = this.#writer;
    if (decision.version === 0 && !this.#table.canCreate) {
      // The row was deleted after it had been found taken: the resource is taken in one statement again.
      writer.known = undefined;
      return 'unknown';
    }
    if (decision.hasEnqueued) await this.#rows.beat(limit);
    const version = freshVersion();
    const written = this.#rows.prepare(writer, decision, version);
    const steps = [...this.#batch];
    this.#sent = {
      version,
      finish: () => {
        written(undefined);
        for (const step of steps) this.#finish(step);
      },
    };
    const wasAmbiguous = this.#isAmbiguous;
    this.#isAmbiguous = true;
    const sentAt = performance.now();
    const isPatient = areNewcomers(steps) && isCrowd(writer.known, this.#conflicts + 1);
    const outcome = await this.#table.write({ name: writer.resource, decision, version, isPatient }, limit);
    const writeMs = performance.now() - sentAt;
    switch (outcome.status) {
      case 'written':
        writer.wrote(writeMs, true, knowledge === 'remembered');
        written(outcome);
        return this.#finishAll();
      case 'conflict':
        writer.sawForeignWrite();
        writer.wrote(writeMs, false, false);
        this.#isAmbiguous = wasAmbiguous || outcome.earlier !== undefined;
        return this.#refused(outcome);
      default:
        return outcome satisfies never;
    }
  }

  /**
   * Others have written. What they wrote is known where the table told it.
   *
   * @throws MalformedRecordError
   */
  #refused({ found, earlier }: RowConflict): RowKnowledge {
    this.#conflicts += 1;
    this.#wasRefused = true;
    if (found !== undefined) this.#learnFound(found);
    if (earlier === 'written') this.#finishSent();
    // A client that repeats a request by itself may have met its own write: nobody has looked.
    if (found === undefined) return 'stale';
    this.#sent = undefined;
    return 'fresh';
  }

  /** @throws MalformedRecordError */
  #learnFound(found: Snapshot): void {
    this.#rows.learnAlive(found);
    const row = found.rows.get(this.#writer.resource) ?? NO_ROW;
    this.#writer.learn(row, found.now);
    if (row.malformed !== undefined) throw row.malformed;
  }

  #finish(step: RowStep): void {
    this.#batch.splice(this.#batch.indexOf(step), 1);
    step.finish();
  }

  #finishAll(): RowKnowledge {
    for (const step of this.#batch.splice(0)) step.finish();
    return 'fresh';
  }

  /** Finishes the steps that were decided with the write. Steps that have come since were not. */
  #finishSent(): RowKnowledge {
    this.#sent?.finish();
    this.#sent = undefined;
    return 'fresh';
  }
}

/** The time limit of a batch: it ends when the last of its calls does. */
function limitOf({ urgency }: RowWriter, batch: readonly RowStep[]): TimeLimit {
  const now = (): number => performance.now();
  const left = batch.reduce((most, { call }) => Math.max(most, call.deadline - call.now()), -Infinity);
  return { now, deadline: now() + left, urgency };
}
