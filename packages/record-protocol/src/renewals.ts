import type { Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import { freshVersion } from './fresh-version.ts';
import { NO_ROW } from './lock-row.ts';
import type { LockTable, RowWrite, RowWritten } from './lock-table.ts';
import { MalformedRecordError } from './malformed-record.ts';
import { micros, type RowDecision } from './row-decision.ts';
import { isReliable, type RowKnowledge, type SentRowWrite, tookPlace } from './row-knowledge.ts';
import type { RowWriter } from './row-writer.ts';
import type { RowsInUse } from './rows-in-use.ts';

const MAX_PASSES = 3;

type Statuses = Map<RenewItem, RenewalStatus>;

/** The renewals of one resource. */
interface RowRenewal {
  readonly writer: RowWriter;
  readonly items: readonly RenewItem[];
  knowledge: RowKnowledge;
  sent: SentRowWrite | undefined;
}

interface RenewalWrite extends RowWrite {
  readonly renewal: RowRenewal;
  finish(written: RowWritten | undefined): void;
}

/**
 * Renews many leases together: the rows of all go in one request to the table, which compares and swaps each by itself. What is known
 * of a row decides what is done with it, as in a {@link Round}; it has no steps to wait for, and no resource to take.
 */
export class Renewals {
  readonly #table: LockTable;
  readonly #rows: RowsInUse;

  constructor(table: LockTable, rows: RowsInUse) {
    this.#table = table;
    this.#rows = rows;
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const statuses: Statuses = new Map();
    const byResource = new Map<string, RenewItem[]>();
    for (const item of items) {
      const { resource } = item.grant.request;
      const others = byResource.get(resource);
      if (others === undefined) byResource.set(resource, [item]);
      else others.push(item);
    }
    const alone: RenewItem[] = [];
    const together: RowRenewal[] = [];
    for (const [resource, ofResource] of byResource) {
      const writer = this.#rows.tryLock(resource);
      if (writer === undefined) alone.push(...ofResource);
      else {
        const knowledge = writer.known === undefined ? 'stale' : 'remembered';
        together.push({ writer, items: ofResource, knowledge, sent: undefined });
      }
    }
    try {
      const { rowsAtOnce } = this.#table;
      for (let start = 0; start < together.length; start += rowsAtOnce) {
        const left = await this.#renewTogether(together.slice(start, start + rowsAtOnce), statuses, call);
        for (const renewal of left) alone.push(...renewal.items);
      }
    } catch (error) {
      // The rows are unknown now: any of them may have been written before the failure.
      for (const { writer } of together) writer.known = undefined;
      throw error;
    } finally {
      for (const { writer } of together) this.#rows.unlock(writer);
    }
    await Promise.all(alone.map((item) => this.#renewAlone(item, statuses, call)));
    return items.map((item) => statuses.get(item) as RenewalStatus);
  }

  /** Returns the renewals whose rows other clients kept changing. */
  async #renewTogether(
    renewals: readonly RowRenewal[],
    statuses: Statuses,
    call: Call,
  ): Promise<readonly RowRenewal[]> {
    let open = renewals;
    let hasBroken = false;
    for (let pass = 1; pass <= MAX_PASSES && open.length > 0; pass += 1) {
      try {
        open = await this.#pass(open, statuses, call);
      } catch (error) {
        // The connection was closed while idle in the pool, or broke now: the write is repeated once, on another connection.
        if (hasBroken || !this.#table.isBroken(error)) throw error;
        hasBroken = true;
        for (const renewal of open) renewal.knowledge = 'stale';
      }
    }
    return open;
  }

  /** Returns the renewals that are not finished: their rows are stale. */
  async #pass(open: readonly RowRenewal[], statuses: Statuses, call: Call): Promise<readonly RowRenewal[]> {
    const stale = open.filter(({ knowledge }) => knowledge === 'stale');
    const malformed = stale.length > 0 ? await this.#read(stale, call) : undefined;
    const again: RowRenewal[] = [];
    const writes: RenewalWrite[] = [];
    for (const renewal of open) {
      const { writer, items, sent } = renewal;
      const error = malformed?.get(renewal);
      if (error !== undefined) {
        for (const item of items) statuses.set(item, { status: 'unknown', error });
        continue;
      }
      if (tookPlace(sent, writer.known)) {
        sent.finish();
        continue;
      }
      // A renewal takes nobody out of the queue, so that it needs not look who has died.
      const decision = writer.decide({ ...this.#rows.context, isAlive: () => true });
      const decided = items.map((item) => renewIn(decision, item));
      const finish = (): void => {
        for (const [index, item] of items.entries())
          finishOne(item, decided[index] as RenewalStatus, writer, statuses);
      };
      if (!isReliable(renewal.knowledge, decision)) again.push(renewal);
      else if (decision.changed || decision.hasEnded) {
        const version = freshVersion();
        const written = this.#rows.prepare(writer, decision, version);
        const finishWritten = (outcome: RowWritten | undefined): void => {
          written(outcome);
          finish();
        };
        writes.push({ name: writer.resource, decision, version, renewal, finish: finishWritten });
      } else finish();
    }
    for (const { renewal, version, finish } of writes)
      renewal.sent = { version, finish: () => finish(undefined) };
    const outcomes = writes.length === 0 ? [] : await this.#table.writeMany(writes, call);
    for (const [index, { renewal, finish }] of writes.entries()) {
      const outcome = outcomes[index];
      // Without an outcome the row was perhaps not written: its version will tell.
      if (outcome === undefined) again.push(renewal);
      else finish(outcome);
    }
    for (const renewal of again) renewal.knowledge = 'stale';
    return again;
  }

  /** Reads rows; gives the errors of those that could not be decoded. */
  async #read(renewals: readonly RowRenewal[], call: Call): Promise<ReadonlyMap<RowRenewal, Error>> {
    const malformed = new Map<RowRenewal, Error>();
    const names = renewals.map(({ writer }) => writer.resource);
    const snapshot = await this.#table.snapshot(names, [], call);
    this.#rows.learnAlive(snapshot);
    for (const renewal of renewals) {
      const row = snapshot.rows.get(renewal.writer.resource) ?? NO_ROW;
      renewal.writer.learn(row, snapshot.now);
      renewal.knowledge = 'fresh';
      if (row.malformed !== undefined) malformed.set(renewal, row.malformed);
    }
    return malformed;
  }

  async #renewAlone(item: RenewItem, statuses: Statuses, call: Call): Promise<void> {
    try {
      await this.#rows.submit<RenewalStatus>(
        item.grant.request.resource,
        call,
        (decision) => renewIn(decision, item),
        { finish: (status, writer) => finishOne(item, status, writer, statuses) },
      );
    } catch (error) {
      // The record of one lock does not keep the others from their renewals.
      if (!(error instanceof MalformedRecordError)) throw error;
      statuses.set(item, { status: 'unknown', error });
    }
  }
}

function renewIn(decision: RowDecision, { grant, ttlMs }: RenewItem): RenewalStatus {
  return decision.renew(grant.request.acquisitionId, Number(grant.fencingToken), micros(ttlMs));
}

function finishOne(item: RenewItem, status: RenewalStatus, writer: RowWriter, statuses: Statuses): void {
  statuses.set(item, status);
  if (status.status === 'lost') writer.own.delete(item.grant.request.acquisitionId);
}
