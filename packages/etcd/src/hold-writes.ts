import type { Call, Grant } from '@locks/core/backend';
import type { IRequestOp, ITxnResponse } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import { type Answer, answerOf, termOf } from './answer.ts';
import { encodeHold, type Entry } from './entry.ts';
import { type EtcdPort, Sendings } from './etcd-port.ts';
import { holdOf, keepAliveFor, validityOf } from './granting.ts';
import type { Lease, Leases } from './leases.ts';
import { isLeaseGone } from './retryable.ts';
import type { WaiterSession } from './waiter-session.ts';

/** What a transaction left of one resource, and the grant of an acquisition that holds it now. */
export type Answered = Answer & { readonly grant: Grant | undefined };

export interface Sent {
  readonly response: ITxnResponse;
  readonly sentAt: number;
  readonly renewals: ReadonlyMap<string, ReturnType<typeof keepAliveFor>>;
}

/** Sends what may make an acquisition hold, and takes note of what came of it. */
export class HoldWrites {
  readonly #port: EtcdPort;
  readonly #leases: Leases;
  readonly #session: WaiterSession;

  constructor(port: EtcdPort, leases: Leases, session: WaiterSession) {
    this.#port = port;
    this.#leases = leases;
    this.#session = session;
  }

  /** Puts a lease aside for the grant. */
  async lease(acquisition: Acquisition, call: Call): Promise<Lease> {
    if (acquisition.lease !== undefined) return acquisition.lease;
    const lease = await this.#leases.take(acquisition.request.ttlMs, call);
    if (acquisition.ended) this.#leases.giveBack(lease);
    acquisition.assertWanted();
    acquisition.lease = lease;
    return lease;
  }

  /** Sends what may write the keys of these acquisitions; `undefined` when a lease was no more and nothing happened. */
  async send(
    acquisitions: readonly Acquisition[],
    leases: readonly Lease[],
    operations: IRequestOp[],
    call: Call,
  ): Promise<Sent | undefined> {
    // Given up while a lease or a session was fetched for it: nobody would take back what is sent now (docs/spec.md §2.2).
    for (const each of acquisitions) each.assertWanted();
    const doubtful = acquisitions.map((each) => each.doubtful);
    const sendings = new Sendings();
    const answered = (): void => {
      // Only now: whoever gives the acquisition up meanwhile must know that this is on its way (docs/spec.md §2.2).
      if (!sendings.repeated)
        acquisitions.forEach((each, index) => (each.doubtful = doubtful[index] === true));
    };
    for (const each of acquisitions) each.doubtful = true;
    const sentAt = call.now();
    const renewals = new Map(leases.map((lease) => [lease.id, keepAliveFor(this.#leases, lease)]));
    try {
      const response = await this.#port.txn(
        { compare: [], success: operations, failure: [] },
        call,
        sendings,
      );
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

  /** The states follow the write in the answer. What holds now gets its grant. */
  async settle(
    acquisitions: readonly Acquisition[],
    { response, sentAt, renewals }: Sent,
    call: Call,
  ): Promise<Answered[]> {
    const answers: Answered[] = [];
    for (const [index, acquisition] of acquisitions.entries()) {
      const answer = answerOf(response, 1 + index, acquisition.request.acquisitionId);
      acquisition.assertWanted();
      const { own } = answer;
      if (own?.held !== true) acquisition.hold = undefined;
      let grant = acquisition.hold?.grant;
      if (own?.held === true && grant === undefined) {
        const lease = leaseOf(acquisition, own);
        const renewal = renewals.has(lease.id) ? renewals.get(lease.id) : this.#leases.renew(lease);
        const validity = await validityOf(this.#leases, lease, sentAt, termOf(response), renewal);
        acquisition.assertWanted();
        if (validity !== undefined) {
          this.leaveLine(acquisition);
          grant = holdOf(acquisition, own, lease, validity, call).grant;
        }
      }
      answers.push({ ...answer, grant });
    }
    // What was put aside and not used has been waiting since.
    for (const { lease } of acquisitions) if (lease !== undefined) lease.fresh = false;
    return answers;
  }

  leaveLine(acquisition: Acquisition): void {
    if (acquisition.place === undefined) return;
    acquisition.place = undefined;
    this.#session.leave();
  }
}

export function putHold({ key, request, place }: Acquisition, lease: Lease): IRequestOp {
  // A permit that was queued under another limit is granted under the present one.
  const value = encodeHold({ mode: place?.mode ?? request.mode, label: request.label });
  return { request_put: { key, value, lease: lease.id } };
}

/** Most often the one that was put aside; another when the same id was granted elsewhere. */
function leaseOf({ lease, request }: Acquisition, own: Entry): Lease {
  if (lease?.id === own.lease) return lease;
  const wantedSeconds = Math.ceil(request.ttlMs / 1_000);
  const foreign = { id: own.lease, wantedSeconds, ttlSeconds: wantedSeconds };
  return { ...foreign, grantedFrom: 0, fresh: false, endsAt: 0 };
}
