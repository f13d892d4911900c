import type { Call, Grant } from '@locks/core/backend';
import type { Acquisition, EtcdHold } from './acquisition.ts';
import { createdAt, modifiedAt, read, remove, when } from './conditions.ts';
import type { SendCount } from './etcd-port.ts';
import type { HoldWrites } from './hold-writes.ts';
import type { Removed } from './key-removals.ts';
import type { LeasePool } from './lease-pool.ts';
import { revisionOf, succeededAt } from './txn-responses.ts';
import { putHold } from './txn-branches.ts';

/** Hands exclusive locks from one acquisition of this process to the next one, in one transaction. */
export class LocalHandOffs {
  readonly #leases: LeasePool;
  readonly #writes: HoldWrites;

  constructor(leases: LeasePool, writes: HoldWrites) {
    this.#leases = leases;
    this.#writes = writes;
  }

  /** Gets a lease ready for the waiter behind a new hold: its own lease, which is free after the release, is too late. */
  prepare({ next }: Acquisition, call: Call): void {
    if (next !== undefined) this.#leases.prepare(next.waiter.request.ttlMs, call);
  }

  /**
   * Ends an exclusive hold, and grants the lock to the waiter next to it. Returns `undefined` if nothing was written: nobody of this
   * process waits, or no lease is ready.
   *
   * @param finish - called with the grant, or with `undefined` if the waiter must claim by itself
   */
  async release(
    { next, key }: Acquisition,
    { createRevision }: EtcdHold,
    sends: SendCount,
    finish: (waiter: Acquisition, grant: Grant | undefined) => void,
  ): Promise<Removed | undefined> {
    const waiter = next?.waiter;
    if (waiter === undefined || waiter.busy) return undefined;
    return await new Promise((resolve, reject) => {
      waiter
        .serialized(async () => {
          const sent = await this.#send(key, createRevision, waiter, sends);
          if (sent === undefined) return resolve(undefined);
          // Stopped first: the report of the release would wake a waiter that has its answer.
          waiter.stopWatching?.();
          resolve(sent.removed);
          // The release does not depend on the grant, whose keep-alive may be unanswered.
          const [answer] = await sent.results().catch(() => []);
          finish(waiter, answer?.grant);
        })
        .catch(reject);
    });
  }

  async #send(held: Buffer, createRevision: number, waiter: Acquisition, sends: SendCount) {
    const { key, position, request, ended } = waiter;
    const { call } = waiter.wait;
    if (call === undefined || position === undefined || ended) return undefined;
    const lease = (waiter.lease ??= this.#leases.takeIdle(request.ttlMs));
    if (lease === undefined) return undefined;
    // As long as the hold stands it is the only one, and nobody waits ahead of the waiter next to it (docs/spec.md §11.1). An entry that
    // was deleted has lost its position (§7.1).
    const claim = when([modifiedAt(key, position.modRevision)], [putHold(waiter, lease, 0)]);
    const operations = [when([createdAt(held, createRevision)], [remove(held), claim]), read({ key })];
    const sent = await this.#writes.send([waiter], [lease], operations, call, sends);
    if (sent === undefined) return undefined;
    const { response } = sent;
    return {
      removed: { succeeded: succeededAt(response, 0), revision: revisionOf(response) },
      results: () => this.#writes.readResults([waiter], sent, call, 1),
    };
  }
}
