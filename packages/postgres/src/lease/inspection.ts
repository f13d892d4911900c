import type { InspectOptions, ResourceState } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';
import type { StatementResult } from '../driver/postgres-statements.ts';
import type { LeaseSql } from './lease-sql.ts';
import { endOfPrefix, nameBytes } from './name-bytes.ts';
import { toStates } from './replies.ts';

/** The number of resources that one statement asks for. */
const PAGE = 64;

type Ask = (sql: string, values: readonly Value[]) => Promise<StatementResult>;

/** Returns the holders and waiters of a resource. */
export async function inspectResource(
  ask: Ask,
  sql: LeaseSql,
  resource: string,
  options?: InspectOptions,
): Promise<ResourceState> {
  const { rows } = await ask(options?.waiters === false ? sql.holders : sql.state, [[nameBytes(resource)]]);
  return toStates(rows).get(resource) ?? { name: resource, holders: [], waiters: [] };
}

/** Yields the holders and waiters of each name in use that begins with `prefix`: in byte order, page by page. */
export async function* listResources(ask: Ask, sql: LeaseSql, prefix: string): AsyncGenerator<ResourceState> {
  let from = nameBytes(prefix);
  const before = endOfPrefix(from);
  for (let inclusive = true; ; inclusive = false) {
    const names = await ask(sql.names, [from, inclusive, before, PAGE]);
    const page = names.rows.map(([digits]) => Buffer.from(digits ?? '', 'hex'));
    if (page.length === 0) return;
    const { rows } = await ask(sql.state, [page]);
    const states = toStates(rows);
    for (const name of page) {
      const state = states.get(name.toString('utf8'));
      if (state !== undefined) yield state;
      from = name;
    }
    if (page.length < PAGE) return;
  }
}
