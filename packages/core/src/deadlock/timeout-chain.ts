import { shownId } from '../acquire/acquisition-id.ts';
import type { Holder } from '../backend/types.ts';
import { type ChainMember, quote } from '../errors.ts';
import type { LeaseOwner } from '../lifetime/lease-state.ts';
import { ManagerCore } from '../manager-core.ts';
import { WAIT_NAMES } from '../names.ts';
import { readableHolder } from '../readable-state.ts';
import { heldAround } from '../scope/context.ts';
import { leaseWaits } from '../scope/lease-waits.ts';
import { HOLDER_QUERY_MS, type HolderQuery } from '../waiting/holder-query.ts';
import { toldBy } from './told-wait.ts';
import { type ChainHolder, followWaits } from './wait-chain.ts';

/** The most requests for chains that a manager sends in each `deadlockAfterMs`. */
const MAX_READS = 32;

/** A lock, and the manager of this process that waits for it. */
interface Place {
  readonly name: string;
  readonly owner: LeaseOwner;
}

/** Whether the chain of a query was read from the store, or from this process alone. */
const chainsRead = new WeakMap<HolderQuery, boolean>();
/** When each manager sent its last requests. */
const reads = new WeakMap<ManagerCore, readonly number[]>();
/** What code of this process waits for, by the ids of the holds around it: collected once in an iteration of the event loop. */
let ownWaits: ReadonlyMap<string, Place> | undefined;

/**
 * Finds out for whom the holders of a lock wait themselves, for the error of a wait that is about to give up (docs/spec.md §5.11). What is
 * found is in the query at once, as the wait does not go on for the rest. The store is asked only for a wait that has lasted for
 * `deadlockAfterMs`.
 */
export async function readChain(
  core: ManagerCore,
  name: string,
  query: HolderQuery,
  startedAt: number,
): Promise<void> {
  await query.answered;
  const isLong = core.now() - startedAt >= core.deadlockAfterMs;
  const before = chainsRead.get(query);
  if (before || before === isLong) return;
  chainsRead.set(query, isLong);
  const start: Place = { name, owner: core };
  const endsAt = isLong ? core.now() + HOLDER_QUERY_MS : 0;
  const ask = async (owner: LeaseOwner, lock: string): Promise<readonly Holder[] | undefined> => {
    // The manager of another copy of core may be of another version.
    if (core.now() >= endsAt || !(owner instanceof ManagerCore) || !mayRead(owner)) return undefined;
    const state = owner.ask(
      'inspect',
      lock,
      (call) => owner.backend.inspect(lock, call, { waiters: false }),
      HOLDER_QUERY_MS,
    );
    // Without an answer the chain ends with what is known.
    return (await state.catch(() => undefined))?.holders.map(readableHolder);
  };
  const chains = followWaits(start, {
    async holdersOf(lock) {
      if (lock === start) return query.holders ?? [];
      return (await ask(lock.owner, lock.name)) ?? ownHolders(lock);
    },
    async waitOf({ acquisitionId }, { owner }) {
      const own = waitsOfThisProcess().get(acquisitionId);
      if (own) return own;
      const edges = await ask(owner, WAIT_NAMES + acquisitionId);
      const told = edges?.map(({ label }) => toldBy(label)).find(Boolean);
      return told && { name: told.name, owner };
    },
  });
  for await (const chain of chains) {
    query.chain = chain;
    query.chainText = textOf(chain);
  }
}

function mayRead(core: ManagerCore): boolean {
  const now = core.now();
  const latest = (reads.get(core) ?? []).filter((at) => now - at < core.deadlockAfterMs);
  reads.set(core, [...latest, now].slice(0, MAX_READS));
  return latest.length < MAX_READS;
}

function ownHolders({ name, owner }: Place): readonly ChainHolder[] {
  const leases = [...((owner as Partial<ManagerCore>).monitor?.leases ?? [])].filter(
    ({ grant }) => grant.request.resource === name,
  );
  return leases.map(({ grant: { request }, grantedAt }) => ({
    acquisitionId: shownId(request.acquisitionId),
    label: request.label,
    heldForMs: Math.floor(owner.now() - grantedAt),
  }));
}

function waitsOfThisProcess(): ReadonlyMap<string, Place> {
  if (ownWaits !== undefined) return ownWaits;
  const byHold = new Map<string, Place>();
  for (const [owner, locks] of leaseWaits.owners)
    for (const [name, waits] of locks)
      for (const { frame } of waits)
        for (const { grant } of heldAround(frame))
          byHold.set(shownId(grant.request.acquisitionId), { name, owner });
  ownWaits = byHold;
  setImmediate(() => (ownWaits = undefined));
  return byHold;
}

/** What the message of the error says of a chain. */
function textOf([first, ...others]: readonly ChainMember[]): string {
  if (!first?.waitsFor) return '';
  const texts = others.map(({ label, acquisitionId, heldForMs, waitsFor }) => {
    const since = heldForMs ? ` for ${heldForMs} ms` : '';
    const on = waitsFor ? `, which waits for ${quote(waitsFor)}` : '';
    return `, held by ${label ?? acquisitionId}${since}${on}`;
  });
  return ` ${first.label ?? first.acquisitionId} waits for ${quote(first.waitsFor)}${texts.join('')}.`;
}
