import type { Holder, ResourceState, Waiter } from '@locks/core';
import type { LockInfo, LockManagerSnapshot, WebLockMode } from './types.ts';

/** The state that a client knows better than the store. */
export interface OwnView {
  /** The name of a resource. */
  nameOf(resource: string): string;
  /** Whether an entry of the store belongs to a request of this client that is over already. */
  isOver(label: string | undefined): boolean;
  /** Whether the store serves waiters in order. */
  readonly isFifo: boolean;
  /** The waiting requests of this client, in their order. */
  readonly waiting: readonly { readonly label: string; readonly info: LockInfo }[];
}

type StoreEntry = Holder | Waiter;

/** The lock manager's state as the specification defines it, from the state of the store and what the client knows. */
export function snapshotOf(states: readonly ResourceState[], own: OwnView): LockManagerSnapshot {
  const held: LockInfo[] = [];
  const pending: LockInfo[] = [];
  const seen = new Set<string | undefined>();
  for (const state of states) {
    const name = own.nameOf(state.name);
    const isLive = ({ label }: StoreEntry): boolean => !own.isOver(label);
    const holders: StoreEntry[] = state.holders.filter(isLive);
    const waiters: StoreEntry[] = state.waiters.filter(isLive);
    // In the specification a queue is always processed before a snapshot: a waiter that can be granted counts as a holder.
    while (own.isFifo && waiters[0] !== undefined && isGrantable(waiters[0], holders)) {
      holders.push(...waiters.splice(0, 1));
    }
    for (const { label } of [...holders, ...waiters]) seen.add(label);
    held.push(...holders.map((entry) => infoOf(name, entry)));
    pending.push(...waiters.map((entry) => infoOf(name, entry)));
  }
  pending.push(...own.waiting.filter(({ label }) => !seen.has(label)).map(({ info }) => info));
  return { held, pending };
}

/** The label of a request: `<client>#<number of the request>`. */
export function labelOf(clientId: string, number: number): string {
  return `${clientId}#${number}`;
}

/** Makes a `LockInfo` with its members in the order of their names, as Web IDL converts a dictionary. */
export function lockInfo(clientId: string, mode: WebLockMode, name: string): LockInfo {
  return { clientId, mode, name };
}

function isGrantable({ mode }: StoreEntry, holders: readonly StoreEntry[]): boolean {
  if (mode.kind !== 'shared') return holders.length === 0;
  return holders.every((holder) => holder.mode.kind === 'shared');
}

/**
 * Makes the `LockInfo` of a store's entry. An acquisition made directly with core has a label of another form, which is shown
 * as its client id.
 */
function infoOf(name: string, { label, acquisitionId, mode }: StoreEntry): LockInfo {
  const clientId = (label ?? acquisitionId).replace(/#\d+$/, '');
  return lockInfo(clientId, mode.kind === 'shared' ? 'shared' : 'exclusive', name);
}
