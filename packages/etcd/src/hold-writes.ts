import type { Call, Grant } from '@locks/core/backend';
import type { IRequestOp, ITxnResponse } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import { type ResourceView, viewOf, termOf } from './txn-responses.ts';
import type { EtcdEntry } from './etcd-entry.ts';
import type { EtcdPort, SendCount } from './etcd-port.ts';
import { holdOf, keepAliveFor, validityOf } from './lease-validity.ts';
import { type EtcdLease, foreignLease, type LeasePool } from './lease-pool.ts';
import { isLeaseGone } from './etcd-errors.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';

/** The state of one resource after a transaction, and the grant if the acquisition holds now. */
export type HoldResult = ResourceView & { readonly grant: Grant | undefined };

export interface SentWrite {
  readonly response: ITxnResponse;
  readonly sentAt: number;
  readonly renewals: ReadonlyMap<string, ReturnType<typeof keepAliveFor>>;
}

/** Sends the transactions that may grant an acquisition or queue it, and records their results. */
export class HoldWrites {
  readonly #port: EtcdPort;
  readonly #leases: LeasePool;
  readonly #sessions: EtcdWaiterSessions;

  constructor(port: EtcdPort, leases: LeasePool, sessions: EtcdWaiterSessions) {
    this.#port = port;
    this.#leases = leases;
    this.#sessions = sessions;
  }

  /** Reserves a lease for the grant. */
  async lease(acquisition: Acquisition, call: Call): Promise<EtcdLease> {
    if (acquisition.lease !== undefined) return acquisition.lease;
    const lease = await this.#leases.take(acquisition.request.ttlMs, call);
    if (acquisition.ended) this.#leases.release(lease);
    acquisition.assertWanted();
    acquisition.lease = lease;
    return lease;
  }

  /** Sends operations that may write the keys of these acquisitions; `undefined` if a lease was gone and nothing was written. */
  async send(
    acquisitions: readonly Acquisition[],
    leases: readonly EtcdLease[],
    operations: IRequestOp[],
    call: Call,
    sends: SendCount,
  ): Promise<SentWrite | undefined> {
    // An acquisition that was abandoned while its lease or session was fetched must not write: nothing would undo it (docs/spec.md §2.2).
    for (const each of acquisitions) each.assertWanted();
    const hasUnansweredWrite = acquisitions.map((each) => each.hasUnansweredWrite);
    const answered = (): void => {
      // `hasUnansweredWrite` is cleared only after the answer: an abandon in the meantime must know that the request is in flight
      // (docs/spec.md §2.2).
      if (!sends.repeated)
        acquisitions.forEach((each, index) => (each.hasUnansweredWrite = hasUnansweredWrite[index] === true));
    };
    for (const each of acquisitions) each.hasUnansweredWrite = true;
    const sentAt = call.now();
    const renewals = new Map(leases.map((lease) => [lease.id, keepAliveFor(this.#leases, lease)]));
    try {
      const response = await this.#port.run(operations, call, sends);
      answered();
      return { response, sentAt, renewals };
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      answered();
      for (const each of acquisitions) each.lease = undefined;
      this.#leases.forgetIdle();
      return undefined;
    }
  }

  /** Decodes the reads of the answer, from index `first` on, and makes the grant of each acquisition that holds now. */
  async readResults(
    acquisitions: readonly Acquisition[],
    { response, sentAt, renewals }: SentWrite,
    call: Call,
    first: number,
  ): Promise<HoldResult[]> {
    const answers: HoldResult[] = [];
    for (const [index, acquisition] of acquisitions.entries()) {
      const answer = viewOf(response, first + index, acquisition.request.acquisitionId);
      acquisition.assertWanted();
      const { own } = answer;
      if (own?.held !== true) acquisition.hold = undefined;
      let grant = acquisition.hold?.grant;
      if (own?.held === true && grant === undefined) {
        const lease = leaseOf(acquisition, own);
        const renewal = renewals.has(lease.id) ? renewals.get(lease.id) : this.#leases.renew(lease);
        const validity = await validityOf(this.#leases, lease, sentAt, termOf(response), renewal, call);
        acquisition.assertWanted();
        if (validity !== undefined) {
          this.#sessions.dequeued(acquisition);
          grant = holdOf(acquisition, own, lease, validity, call).grant;
        }
      }
      answers.push({ ...answer, grant });
    }
    return answers;
  }
}

/** The lease of the hold: the reserved one, or another if a second client was granted the same id. */
function leaseOf({ lease, request }: Acquisition, own: EtcdEntry): EtcdLease {
  if (lease?.id === own.lease) return lease;
  return foreignLease(own.lease, Math.ceil(request.ttlMs / 1_000));
}
