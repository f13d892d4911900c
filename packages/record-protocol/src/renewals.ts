import type { Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import { freshVersion } from './fresh-version.ts';
import { NO_ROW } from './lock-row.ts';
import { MalformedRecordError } from './malformed-record.ts';
import type { LockTable, RowWrite, RowWritten } from './lock-table.ts';
import { micros } from './row-decision.ts';
import type { RowWriter } from './row-writer.ts';
import type { RowsInUse } from './rows-in-use.ts';

const MAX_PASSES = 3;

/** The renewals of one resource. */
interface RowRenewal {
  readonly writer: RowWriter;
  readonly indexes: readonly number[];
  mustRead: boolean;
  /** The write that may have succeeded. */
  sent: { readonly version: number; readonly renewalStatuses: readonly RenewalStatus[] } | undefined;
}

/** Renews many leases together. Each row is compared and swapped by itself; changed rows are read and tried again. */
export class Renewals {
  readonly #table: LockTable;
  readonly #rows: RowsInUse;

  constructor(table: LockTable, rows: RowsInUse) {
    this.#table = table;
    this.#rows = rows;
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const renewalStatuses: (RenewalStatus | undefined)[] = items.map(() => undefined);
    const byResource = new Map<string, number[]>();
    items.forEach(({ grant }, index) => {
      const { resource } = grant.request;
      const indexes = byResource.get(resource);
      if (indexes === undefined) byResource.set(resource, [index]);
      else indexes.push(index);
    });
    const alone: number[][] = [];
    const together: RowRenewal[] = [];
    for (const [resource, indexes] of byResource) {
      const writer = this.#rows.tryLock(resource);
      if (writer === undefined) alone.push(indexes);
      else together.push({ writer, indexes, mustRead: writer.known === undefined, sent: undefined });
    }
    const left: number[][] = [];
    try {
      const { rowsAtOnce } = this.#table;
      for (let start = 0; start < together.length; start += rowsAtOnce) {
        left.push(
          ...(await this.#renewRowRenewals(
            together.slice(start, start + rowsAtOnce),
            items,
            renewalStatuses,
            call,
          )),
        );
      }
    } catch (error) {
      // The rows are unknown now: any of them may have been written before the failure.
      for (const { writer } of together) writer.known = undefined;
      throw error;
    } finally {
      for (const { writer } of together) this.#rows.unlock(writer);
    }
    await Promise.all(
      [...alone, ...left].map((indexes) => this.#renewAlone(indexes, items, renewalStatuses, call)),
    );
    return renewalStatuses as RenewalStatus[];
  }

  /** Returns the indexes of the renewals whose rows other clients kept changing. */
  async #renewRowRenewals(
    groups: readonly RowRenewal[],
    items: readonly RenewItem[],
    renewalStatuses: (RenewalStatus | undefined)[],
    call: Call,
  ): Promise<readonly number[][]> {
    let open = [...groups];
    let broke = false;
    for (let pass = 1; pass <= MAX_PASSES && open.length > 0; pass += 1) {
      try {
        open = await this.#pass(open, items, renewalStatuses, call);
      } catch (error) {
        // The connection was closed while idle in the pool, or broke now: the write is repeated once, on another connection.
        if (broke || !this.#table.isBroken(error)) throw error;
        broke = true;
        for (const group of open) group.mustRead = true;
      }
    }
    return open.map(({ indexes }) => [...indexes]);
  }

  async #pass(
    open: readonly RowRenewal[],
    items: readonly RenewItem[],
    renewalStatuses: (RenewalStatus | undefined)[],
    call: Call,
  ): Promise<RowRenewal[]> {
    const finish = ({ writer, indexes }: RowRenewal, decided: readonly RenewalStatus[]): void => {
      indexes.forEach((index, position) => {
        const renewalStatus = decided[position] as RenewalStatus;
        renewalStatuses[index] = renewalStatus;
        if (renewalStatus.status === 'lost')
          writer.own.delete(itemAt(items, index).grant.request.acquisitionId);
      });
    };
    const unread = open.filter(({ mustRead }) => mustRead);
    const malformed = unread.length > 0 ? await this.#read(unread, call) : undefined;
    const again: RowRenewal[] = [];
    const writes: (RowWrite & {
      readonly group: RowRenewal;
      readonly decided: readonly RenewalStatus[];
      readonly written: (written: RowWritten) => void;
    })[] = [];
    for (const group of open) {
      const { writer, sent } = group;
      const error = malformed?.get(group);
      if (error !== undefined) {
        finish(group, unknownFor(group, error));
        continue;
      }
      if (sent !== undefined && writer.known?.version === sent.version) {
        finish(group, sent.renewalStatuses);
        continue;
      }
      // A renewal takes nobody out of the queue, so that it needs not look who has died.
      const decision = writer.decide({ ...this.#rows.context, isAlive: () => true });
      const decided = group.indexes.map((index) => {
        const { grant, ttlMs } = itemAt(items, index);
        return decision.renew(grant.request.acquisitionId, Number(grant.fencingToken), micros(ttlMs));
      });
      const isLost = decided.some(({ status }) => status !== 'held');
      if (!group.mustRead && (isLost || !decision.isWhole)) {
        // The known row may be stale: only the store itself can say that a lease is lost.
        group.mustRead = true;
        again.push(group);
      } else if (decision.changed || decision.hasEnded) {
        const version = freshVersion();
        const written = this.#rows.prepare(writer, decision, version);
        writes.push({ name: writer.resource, group, decision, version, decided, written });
      } else {
        finish(group, decided);
      }
    }
    if (writes.length === 0) return again;
    for (const { group, version, decided } of writes) group.sent = { version, renewalStatuses: decided };
    const outcomes = await this.#table.writeMany(writes, call);
    for (const [index, { group, decided, written }] of writes.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) {
        // The row was perhaps not written. Its version tells, so it must be read.
        group.mustRead = true;
        again.push(group);
      } else {
        written(outcome);
        finish(group, decided);
      }
    }
    return again;
  }

  /** Reads rows; gives the errors of those that could not be decoded. */
  async #read(groups: readonly RowRenewal[], call: Call): Promise<ReadonlyMap<RowRenewal, Error>> {
    const malformed = new Map<RowRenewal, Error>();
    const names = groups.map(({ writer }) => writer.resource);
    const snapshot = await this.#table.snapshot(names, [], call);
    this.#rows.learnAlive(snapshot);
    for (const group of groups) {
      const row = snapshot.rows.get(group.writer.resource) ?? NO_ROW;
      group.writer.learn(row, snapshot.now);
      if (row.malformed !== undefined) malformed.set(group, row.malformed);
    }
    return malformed;
  }

  async #renewAlone(
    indexes: readonly number[],
    items: readonly RenewItem[],
    renewalStatuses: (RenewalStatus | undefined)[],
    call: Call,
  ): Promise<void> {
    await Promise.all(
      indexes.map(async (index) => {
        const { grant, ttlMs } = itemAt(items, index);
        const { resource, acquisitionId } = grant.request;
        const renewed = this.#rows.submit<RenewalStatus>(
          resource,
          call,
          (decision) => decision.renew(acquisitionId, Number(grant.fencingToken), micros(ttlMs)),
          {
            finish({ status }, writer) {
              if (status === 'lost') writer.own.delete(acquisitionId);
            },
          },
        );
        renewalStatuses[index] = await renewed.catch((error: unknown): RenewalStatus => {
          // The record of one lock does not keep the others from their renewals.
          if (error instanceof MalformedRecordError) return { status: 'unknown', error };
          throw error;
        });
      }),
    );
  }
}

function unknownFor({ indexes }: RowRenewal, error: Error): readonly RenewalStatus[] {
  return indexes.map(() => ({ status: 'unknown', error }));
}

function itemAt(items: readonly RenewItem[], index: number): RenewItem {
  return items[index] as RenewItem;
}
