import type { Lease, LockBackend } from '@locks/core';
import type { LockRequest } from './lock-request.ts';

/** A granted request and its lease. */
export interface Held {
  readonly request: LockRequest;
  readonly lease: Lease;
}

const holdersOf = new WeakMap<LockBackend, Holders>();

/**
 * What this process holds on one backend object: whoever is robbed from within the process is told at once, not at the
 * next renewal.
 */
export class Holders {
  readonly #held = new Set<Held>();

  static on(backend: LockBackend): Holders {
    let holders = holdersOf.get(backend);
    if (holders === undefined) holdersOf.set(backend, (holders = new Holders()));
    return holders;
  }

  add(held: Held): void {
    this.#held.add(held);
  }

  delete(held: Held): void {
    this.#held.delete(held);
  }

  /** A thief was granted the resource: who had it before has it no more. A grant with a higher token came after it. */
  robbedBy(thief: Lease, resource: string): void {
    this.#rob(
      ({ lease }) =>
        lease.name === resource &&
        (thief.fencingToken === undefined || (lease.fencingToken ?? 0n) < thief.fencingToken),
    );
  }

  endedByForce(acquisitionIds: ReadonlySet<string>): void {
    this.#rob(({ lease }) => acquisitionIds.has(lease.acquisitionId));
  }

  #rob(isRobbed: (held: Held) => boolean): void {
    for (const held of [...this.#held]) if (isRobbed(held)) held.request.rob(undefined);
  }
}
