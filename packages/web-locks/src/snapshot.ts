import type { Holder, ResourceState, Waiter } from '@locks/core';
import type { LockInfo, LockManagerSnapshot, WebLockMode } from './web-locks.ts';

/** What a client knows better than the store. */
export interface OwnView {
  /** The name of a resource. */
  nameOf(resource: string): string;
  /** Whether this entry of the store is the client's own and over already. */
  isOver(label: string | undefined): boolean;
  /** Whether the store serves those who wait in order. */
  readonly queues: boolean;
  /** The client's own requests that wait, in their order. */
  readonly waiting: readonly { readonly label: string; readonly info: LockInfo }[];
}

type Entry = Holder | Waiter;

/** The lock manager's state as the specification would see it, made of what the store says and what the client knows. */
export function snapshotOf(states: readonly ResourceState[], own: OwnView): LockManagerSnapshot {
  const held: LockInfo[] = [];
  const pending: LockInfo[] = [];
  const seen = new Set<string | undefined>();
  for (const state of states) {
    const name = own.nameOf(state.resource);
    const isLive = ({ label }: Entry): boolean => !own.isOver(label);
    const holders: Entry[] = state.holders.filter(isLive);
    const waiters: Entry[] = state.waiters.filter(isLive);
    // The queue is always processed before anybody looks at it: whose turn it is holds, told of it or not.
    while (own.queues && waiters[0] !== undefined && isGrantable(waiters[0], holders)) {
      holders.push(...waiters.splice(0, 1));
    }
    for (const { label } of [...holders, ...waiters]) seen.add(label);
    held.push(...holders.map((entry) => infoOf(name, entry)));
    pending.push(...waiters.map((entry) => infoOf(name, entry)));
  }
  pending.push(...own.waiting.filter(({ label }) => !seen.has(label)).map(({ info }) => info));
  return { held, pending };
}

/** `<client>#<number of the request>`. */
export function labelOf(clientId: string, number: number): string {
  return `${clientId}#${number}`;
}

/** Members in the order of their names, as Web IDL converts a dictionary. */
export function lockInfo(clientId: string, mode: WebLockMode, name: string): LockInfo {
  return { clientId, mode, name };
}

function isGrantable({ mode }: Entry, holders: readonly Entry[]): boolean {
  if (mode.kind !== 'shared') return holders.length === 0;
  return holders.every((holder) => holder.mode.kind === 'shared');
}

/** An entry of somebody who uses core on the same names has another label: that is its client then. */
function infoOf(name: string, { label, acquisitionId, mode }: Entry): LockInfo {
  const clientId = (label ?? acquisitionId).replace(/#\d+$/, '');
  return lockInfo(clientId, mode.kind === 'shared' ? 'shared' : 'exclusive', name);
}
