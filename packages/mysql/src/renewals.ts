import type { Call, RenewItem, Standing } from '@locks/core/backend';
import type { Desk } from './desk.ts';
import type { Desks } from './desks.ts';
import type { Draft } from './draft.ts';
import { absent } from './lock-state.ts';
import { isBroken, NoAnswerError } from './mysql-error.ts';
import { freshVersion } from './statements.ts';
import type { Store } from './store.ts';

const mostRows = 200;
const mostPasses = 3;

/** The renewals of one resource. */
interface Group {
  readonly desk: Desk;
  readonly indexes: readonly number[];
  mustRead: boolean;
  /** Of a write that may have succeeded. */
  sent: { readonly version: number; readonly standings: readonly Standing[] } | undefined;
}

/** Many leases in one statement: each row is compared and written by itself; those that had changed are read and tried again. */
export class Renewals {
  readonly #store: Store;
  readonly #desks: Desks;

  constructor(store: Store, desks: Desks) {
    this.#store = store;
    this.#desks = desks;
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    const standings: (Standing | undefined)[] = items.map(() => undefined);
    const byResource = new Map<string, number[]>();
    items.forEach(({ grant }, index) => {
      const { resource } = grant.request;
      const indexes = byResource.get(resource);
      if (indexes === undefined) byResource.set(resource, [index]);
      else indexes.push(index);
    });
    const alone: number[][] = [];
    const together: Group[] = [];
    for (const [resource, indexes] of byResource) {
      const desk = this.#desks.tryLock(resource);
      if (desk === undefined) alone.push(indexes);
      else together.push({ desk, indexes, mustRead: desk.known === undefined, sent: undefined });
    }
    const left: number[][] = [];
    try {
      for (let start = 0; start < together.length; start += mostRows) {
        left.push(
          ...(await this.#renewGroups(together.slice(start, start + mostRows), items, standings, call)),
        );
      }
    } catch (error) {
      // What was written before it broke off is not known.
      for (const { desk } of together) desk.known = undefined;
      throw error;
    } finally {
      for (const { desk } of together) this.#desks.unlock(desk);
    }
    await Promise.all(
      [...alone, ...left].map((indexes) => this.#renewAlone(indexes, items, standings, call)),
    );
    return standings as Standing[];
  }

  /** Gives those that others kept changing. */
  async #renewGroups(
    groups: readonly Group[],
    items: readonly RenewItem[],
    standings: (Standing | undefined)[],
    call: Call,
  ): Promise<readonly number[][]> {
    let open = [...groups];
    let broke = false;
    for (let pass = 1; pass <= mostPasses && open.length > 0; pass += 1) {
      try {
        open = await this.#pass(open, items, standings, call);
      } catch (error) {
        // A connection that was closed while it lay in the pool, or that broke now: once more, on another.
        if (broke || !isBroken(error) || error instanceof NoAnswerError) throw error;
        broke = true;
        for (const group of open) group.mustRead = true;
      }
    }
    return open.map(({ indexes }) => [...indexes]);
  }

  async #pass(
    open: readonly Group[],
    items: readonly RenewItem[],
    standings: (Standing | undefined)[],
    call: Call,
  ): Promise<Group[]> {
    const settle = ({ desk, indexes }: Group, decided: readonly Standing[]): void => {
      indexes.forEach((index, position) => {
        const standing = decided[position] as Standing;
        standings[index] = standing;
        if (standing.status === 'lost') desk.own.delete(itemAt(items, index).grant.request.acquisitionId);
      });
    };
    const unread = open.filter(({ mustRead }) => mustRead);
    if (unread.length > 0) await this.#read(unread, call);
    const again: Group[] = [];
    const writes: {
      group: Group;
      draft: Draft;
      version: number;
      decided: readonly Standing[];
      written: (at: number) => void;
    }[] = [];
    for (const group of open) {
      const { desk, sent } = group;
      if (sent !== undefined && desk.known?.version === sent.version) {
        settle(group, sent.standings);
        continue;
      }
      const draft = desk.draft(this.#desks.moment);
      const decided = group.indexes.map((index) => {
        const { grant, ttlMs } = itemAt(items, index);
        return draft.renew(grant.request.acquisitionId, Number(grant.fencingToken), ttlMs);
      });
      const isLost = decided.some(({ status }) => status !== 'held');
      if (!group.mustRead && (isLost || !draft.isWhole)) {
        // Of a loss only the store itself can tell.
        group.mustRead = true;
        again.push(group);
      } else if (draft.changed) {
        const version = freshVersion();
        const written = this.#desks.prepare(desk, draft, version);
        writes.push({ group, draft, version, decided, written });
      } else {
        settle(group, decided);
      }
    }
    if (writes.length > 0) {
      for (const { group, version, decided } of writes) group.sent = { version, standings: decided };
      const sql = this.#store.statements.writeAll(
        writes.map(({ group, draft, version }) => ({ name: group.desk.resource, draft, version })),
      );
      const { rows, value } = await this.#store.write(sql, call);
      for (const { group, decided, written } of writes) {
        if (rows === writes.length) {
          written(value);
          settle(group, decided);
        } else {
          // Some were written and some were not: their versions tell which.
          group.mustRead = true;
          again.push(group);
        }
      }
    }
    return again;
  }

  async #read(groups: readonly Group[], call: Call): Promise<void> {
    const names = groups.map(({ desk }) => desk.resource);
    const snapshot = await this.#store.snapshot(names, [], call);
    this.#desks.learnAlive(snapshot);
    for (const { desk } of groups) desk.learn(snapshot.states.get(desk.resource) ?? absent, snapshot.now);
  }

  async #renewAlone(
    indexes: readonly number[],
    items: readonly RenewItem[],
    standings: (Standing | undefined)[],
    call: Call,
  ): Promise<void> {
    await Promise.all(
      indexes.map(async (index) => {
        const { grant, ttlMs } = itemAt(items, index);
        const { resource, acquisitionId } = grant.request;
        standings[index] = await this.#desks.submit(
          resource,
          call,
          (draft) => draft.renew(acquisitionId, Number(grant.fencingToken), ttlMs),
          ({ status }, desk) => {
            if (status === 'lost') desk.own.delete(acquisitionId);
          },
        );
      }),
    );
  }
}

function itemAt(items: readonly RenewItem[], index: number): RenewItem {
  return items[index] as RenewItem;
}
