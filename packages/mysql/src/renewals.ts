import type { Call, RenewItem, RenewalStatus } from '@locks/core/backend';
import { NO_ROW } from './lock-row.ts';
import { isBroken, MysqlNoAnswerError } from './mysql-error.ts';
import { freshVersion } from './mysql-statements.ts';
import type { MysqlStore } from './mysql-store.ts';
import { micros, type RowDecision } from './row-decision.ts';
import type { RowWriter } from './row-writer.ts';
import type { RowWriters } from './row-writers.ts';

const MAX_ROWS = 200;
const MAX_PASSES = 3;
/** The bytes that a row needs in the statement besides its state. */
const ROW_BYTES = 2_048;

/** The renewals of one resource. */
interface RowRenewal {
  readonly writer: RowWriter;
  readonly indexes: readonly number[];
  mustRead: boolean;
  /** The write that may have succeeded. */
  sent: { readonly version: number; readonly renewalStatuses: readonly RenewalStatus[] } | undefined;
}

/** Renews many leases in one statement. Each row is compared and swapped by itself; changed rows are read and tried again. */
export class Renewals {
  readonly #store: MysqlStore;
  readonly #writers: RowWriters;

  constructor(store: MysqlStore, writers: RowWriters) {
    this.#store = store;
    this.#writers = writers;
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
      const writer = this.#writers.tryLock(resource);
      if (writer === undefined) alone.push(indexes);
      else together.push({ writer, indexes, mustRead: writer.known === undefined, sent: undefined });
    }
    const left: number[][] = [];
    try {
      for (let start = 0; start < together.length; start += MAX_ROWS) {
        left.push(
          ...(await this.#renewRowRenewals(
            together.slice(start, start + MAX_ROWS),
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
      for (const { writer } of together) this.#writers.unlock(writer);
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
        // The connection was closed while idle in the pool, or broke now: the statement is repeated once, on another
        // connection.
        if (broke || !isBroken(error) || error instanceof MysqlNoAnswerError) throw error;
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
    if (unread.length > 0) await this.#read(unread, call);
    const again: RowRenewal[] = [];
    const writes: {
      group: RowRenewal;
      decision: RowDecision;
      version: number;
      decided: readonly RenewalStatus[];
      written: (at: number) => void;
    }[] = [];
    let bytes = 0;
    for (const group of open) {
      const { writer, sent } = group;
      if (sent !== undefined && writer.known?.version === sent.version) {
        finish(group, sent.renewalStatuses);
        continue;
      }
      const decision = writer.decide(this.#writers.context);
      const decided = group.indexes.map((index) => {
        const { grant, ttlMs } = itemAt(items, index);
        return decision.renew(grant.request.acquisitionId, Number(grant.fencingToken), micros(ttlMs));
      });
      const isLost = decided.some(({ status }) => status !== 'held');
      if (!group.mustRead && (isLost || !decision.isWhole)) {
        // The known row may be stale: only the store itself can say that a lease is lost.
        group.mustRead = true;
        again.push(group);
      } else if (decision.changed) {
        bytes += ROW_BYTES + 2 * decision.bytes.length;
        if (writes.length > 0 && bytes > this.#store.packetBytes) {
          // Rows beyond the size of one packet go into the next statement.
          again.push(group);
          continue;
        }
        const version = freshVersion();
        const written = this.#writers.prepare(writer, decision, version);
        writes.push({ group, decision, version, decided, written });
      } else {
        finish(group, decided);
      }
    }
    if (writes.length > 0) {
      for (const { group, version, decided } of writes) group.sent = { version, renewalStatuses: decided };
      const sql = this.#store.statements.writeAll(
        writes.map(({ group, decision, version }) => ({ name: group.writer.resource, decision, version })),
      );
      const { rows, value } = await this.#store.write(sql, call);
      for (const { group, decided, written } of writes) {
        if (rows === writes.length) {
          written(value);
          finish(group, decided);
        } else {
          // Some rows were written and some were not: their versions tell which, so they must be read.
          group.mustRead = true;
          again.push(group);
        }
      }
    }
    return again;
  }

  async #read(groups: readonly RowRenewal[], call: Call): Promise<void> {
    const names = groups.map(({ writer }) => writer.resource);
    const snapshot = await this.#store.snapshot(names, [], call);
    this.#writers.learnAlive(snapshot);
    for (const { writer } of groups) writer.learn(snapshot.rows.get(writer.resource) ?? NO_ROW, snapshot.now);
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
        renewalStatuses[index] = await this.#writers.submit(
          resource,
          call,
          (decision) => decision.renew(acquisitionId, Number(grant.fencingToken), micros(ttlMs)),
          ({ status }, writer) => {
            if (status === 'lost') writer.own.delete(acquisitionId);
          },
        );
      }),
    );
  }
}

function itemAt(items: readonly RenewItem[], index: number): RenewItem {
  return items[index] as RenewItem;
}
