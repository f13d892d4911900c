import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import type { AttemptOutcome, Blocked } from './attempt-outcome.ts';
import { BlockerWatches } from './blocker-watches.ts';
import type { Claims } from './claims.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Holdings } from './holdings.ts';
import type { LocalHandOffs } from './local-hand-offs.ts';
import { ownCall, QueueChecks } from './queue-checks.ts';
import type { ClaimBasis } from './txn-branches.ts';
import type { WaiterSessionListener } from './waiter-sessions.ts';
import type { WatchStream } from './watch-stream.ts';

/**
 * The time without a call after which core has forgotten an entry, or its abandon, and the entry must not block the others: core
 * attempts, waits or abandons again sooner.
 */
const UNATTENDED_MS = 2_500;
const ABANDON_MS = 3_000;

/** The waiters of this process, from an attempt that is blocked to the grant or the end of the wait. Each watches what blocks it. */
export class WatchingWaiters implements WaiterSessionListener {
  readonly #watches: WatchStream;
  readonly #claims: Claims;
  readonly #handOffs: LocalHandOffs;
  readonly #holdings: Holdings;
  readonly #acquisitions: Acquisitions;
  readonly #checks: QueueChecks;
  readonly #blockers: BlockerWatches;

  constructor(
    port: EtcdPort,
    watches: WatchStream,
    claims: Claims,
    handOffs: LocalHandOffs,
    holdings: Holdings,
    acquisitions: Acquisitions,
  ) {
    this.#watches = watches;
    this.#claims = claims;
    this.#handOffs = handOffs;
    this.#holdings = holdings;
    this.#acquisitions = acquisitions;
    const claim = (acquisition: Acquisition, basis: ClaimBasis): void => this.#claim(acquisition, basis);
    this.#checks = new QueueChecks(port, claims, acquisitions, {
      claim,
      finish: (acquisition, outcome) => this.#finish(acquisition, outcome),
    });
    this.#blockers = new BlockerWatches(watches, acquisitions, this.#checks, claim);
  }

  async awaitTurn({ acquisitionId }: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const acquisition = this.#acquisitions.get(acquisitionId);
    if (acquisition?.position === undefined || acquisition.ended) return undefined;
    const turn = acquisition.wait.begin(call);
    if (acquisition.woken) this.#claim(acquisition, { type: 'unread' });
    const grant = await turn;
    if (grant === undefined) return undefined;
    this.#holdings.granted(acquisition);
    this.#handOffs.prepare(acquisition, call);
    return grant;
  }

  /** Watches what blocks an acquisition. */
  blocked(acquisition: Acquisition, outcome: Blocked): void {
    this.#blockers.watch(acquisition, outcome);
  }

  /** Releases a hold; where its next waiter is one of this process, in the transaction that grants that one. */
  async release(acquisition: Acquisition, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    return await this.#holdings.release(acquisition, call, (hold, sends) =>
      this.#handOffs.release(acquisition, hold, sends, (waiter, grant) => {
        if (grant === undefined) this.#claim(waiter, { type: 'unread' });
        else this.#finish(waiter, { status: 'granted', grant });
      }),
    );
  }

  /** Ends every hold and queue entry of an id: afterwards the id neither holds nor waits. */
  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    const all = this.#acquisitions.abandon(request, call);
    for (const acquisition of all) this.#stopWaiting(acquisition);
    await Promise.all(all.map((acquisition) => this.#holdings.abandon(acquisition, call)));
  }

  heartbeat(): void {
    this.#watches.probe();
    this.#checks.periodically();
    this.#abandonUnattended();
  }

  sessionLost(): void {
    for (const acquisition of this.#acquisitions.all())
      if (acquisition.position !== undefined) this.#checks.soon(acquisition);
  }

  close(): void {
    this.#checks.close();
    for (const acquisition of this.#acquisitions.all()) this.#stopWaiting(acquisition);
  }

  /** Ends the wait of an acquisition that was granted or abandoned. */
  #stopWaiting(acquisition: Acquisition): void {
    acquisition.stopWatching?.();
    acquisition.wait.end();
  }

  /** Abandons entries that core has forgotten, and once more those whose abandon got no answer: the session keeps them alive. */
  #abandonUnattended(): void {
    // After a stall of the event loop core's timers are as late as this one: they run before the check counts.
    setImmediate(() => {
      for (const { request, position, busy, abandonedAt } of this.#acquisitions.silentFor(UNATTENDED_MS)) {
        const isForgotten = position !== undefined && !busy;
        if (isForgotten || abandonedAt !== undefined)
          this.abandon(request, ownCall(ABANDON_MS)).catch(() => {});
      }
    });
  }

  /** Claims the turn of an acquisition, now or with its next `awaitTurn`. */
  #claim(acquisition: Acquisition, basis: ClaimBasis): void {
    const { call } = acquisition.wait;
    acquisition.woken = call === undefined;
    if (call === undefined) return;
    acquisition
      .serialized(async () => {
        // An earlier task of this acquisition has granted or abandoned it.
        if (acquisition.ended || acquisition.hold !== undefined) return void acquisition.wait.end();
        this.#finish(acquisition, await this.#claims.claim(acquisition, basis, call));
      })
      .catch((error: unknown) => void acquisition.wait.fail(error));
  }

  #finish(acquisition: Acquisition, outcome: AttemptOutcome): void {
    switch (outcome.status) {
      case 'granted':
        acquisition.stopWatching?.();
        acquisition.wait.end(outcome.grant);
        return;
      case 'blocked':
        if (!acquisition.ended) this.#blockers.watch(acquisition, outcome);
        return;
      case 'not-queued':
      case 'conflict':
        return this.#stopWaiting(acquisition);
      default:
        return outcome satisfies never;
    }
  }
}
