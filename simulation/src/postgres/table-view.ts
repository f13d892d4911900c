import type { LockMode } from '@locks/core';
import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import type { TableTexts } from './embedded-postgres.ts';

/** What the tables say of one resource, read by what their columns mean alone. Times are microseconds. */
export interface TableView {
  readonly holds: readonly HoldRecord[];
  readonly waiters: readonly WaiterRecord[];
}

/** A client of the table of clients. */
export interface ClientView {
  readonly aliveUntil: number;
  /** The key of the advisory lock of its listener. */
  readonly listener: string | undefined;
}

interface Row {
  readonly name: string;
  readonly id: string | null;
  readonly label: string | null;
}
interface LockRow extends Row {
  readonly permits: number | null;
  readonly stolen: number;
  readonly token: number;
  readonly expires_at: string;
}
interface ShareRow extends Row {
  readonly kind: number;
  readonly weight: number;
  readonly token: number;
  readonly expires_at: string;
}
interface WaiterRow extends Row {
  readonly ticket: number;
  readonly client: string;
  readonly kind: number;
  readonly weight: number;
  readonly ttl_ms: number;
  readonly enqueued_at: string;
}
interface ClientRow {
  readonly client: string;
  readonly alive_until: string;
}

export class TablesView {
  readonly #texts: TableTexts;
  readonly #views: ReadonlyMap<string, TableView>;
  readonly clients: ReadonlyMap<string, ClientView>;
  /** Rows of names that no row of the table of locks has: nobody would find them. */
  readonly hasStrays: boolean;

  /** @param before - what it says of tables that are the same is taken over */
  constructor(texts: TableTexts, before?: TablesView) {
    this.#texts = texts;
    const isSame = (earlier: TablesView, ...tables: readonly number[]): boolean =>
      tables.every((table) => earlier.#texts[table] === texts[table]);
    this.clients = before !== undefined && isSame(before, 3, 4) ? before.clients : clientsOf(texts);
    if (before !== undefined && isSame(before, 0, 1, 2)) {
      this.#views = before.#views;
      this.hasStrays = before.hasStrays;
      return;
    }
    const [locks, shares, waiters] = texts.slice(0, 3).map((text) => JSON.parse(text ?? '[]') as unknown) as [
      LockRow[],
      ShareRow[],
      WaiterRow[],
    ];
    this.#views = new Map(locks.map((lock) => [nameOf(lock), viewOf(lock, shares, waiters)]));
    this.hasStrays = [...shares, ...waiters].some(({ name }) => locks.every((lock) => lock.name !== name));
  }

  get(resource: string): TableView {
    return this.#views.get(resource) ?? NOTHING;
  }
}

function clientsOf(texts: TableTexts): ReadonlyMap<string, ClientView> {
  const clients = JSON.parse(texts[3] ?? '[]') as ClientRow[];
  const listeners = JSON.parse(texts[4] ?? '{}') as Record<string, string | null>;
  return new Map(
    clients.map(({ client, alive_until }) => [
      client,
      { aliveUntil: microsOf(alive_until), listener: listeners[client] ?? undefined },
    ]),
  );
}

const NOTHING: TableView = { holds: [], waiters: [] };

function viewOf(lock: LockRow, shares: readonly ShareRow[], waiters: readonly WaiterRow[]): TableView {
  const { name, permits } = lock;
  const shared = shares.filter((share) => share.name === name).toSorted((a, b) => a.token - b.token);
  const sole = lock.id === null ? [] : [{ ...lock, kind: 0, weight: 1 }];
  // A steal of a share draws the number of the steal, and the token of the share next.
  const firstStolen = lock.stolen > 0 ? shared.find(({ token }) => token > lock.stolen) : undefined;
  return {
    holds: [...sole, ...shared].map((hold) => ({
      id: hold.id ?? '',
      mode: modeOf(hold.kind, hold.weight, permits),
      label: hold.label ?? undefined,
      since: undefined,
      token: hold.token,
      until: microsOf(hold.expires_at),
      span: undefined,
      stolen: hold.token === lock.stolen || hold === firstStolen,
    })),
    waiters: waiters
      .filter((waiter) => waiter.name === name)
      .toSorted((a, b) => a.ticket - b.ticket)
      .map((waiter) => ({
        id: waiter.id ?? '',
        mode: modeOf(waiter.kind, waiter.weight, permits),
        label: waiter.label ?? undefined,
        client: waiter.client,
        ttl: waiter.ttl_ms,
        since: microsOf(waiter.enqueued_at),
      })),
  };
}

function modeOf(kind: number, weight: number, permits: number | null): LockMode {
  if (kind === 2) return { kind: 'permit', limit: permits ?? 0, weight };
  return { kind: kind === 1 ? 'shared' : 'exclusive' };
}

function nameOf({ name }: Row): string {
  return Buffer.from(name.slice(2), 'hex').toString();
}

/** Microseconds since 1970 of a time as the server writes it in JSON. */
function microsOf(text: string): number {
  const [, seconds = '', fraction = '', zone = ''] = /^(.{19})(?:\.(\d+))?(.*)$/.exec(text) ?? [];
  return Date.parse(`${seconds}${zone}`) * 1_000 + Number(fraction.padEnd(6, '0'));
}
