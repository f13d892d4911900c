import { type Call, type Grant, holdsAlone, type LossReason, type RenewalStatus } from '@locks/core/backend';
import type { Acquisition, EtcdHold } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { entriesAt, revisionOf, succeededAt } from './txn-responses.ts';
import { createdAt, modifiedAt, read, remove, when } from './conditions.ts';
import { endOf, reencode } from './etcd-entry.ts';
import { type EtcdPort, type AnswerLimit, SendCount } from './etcd-port.ts';
import type { Keys } from './keys.ts';
import type { LeasePool } from './lease-pool.ts';
import { KeyRemovals, type Removed } from './key-removals.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';
import type { WatchEvent, WatchStream } from './watch-stream.ts';
import { unmarkSteal } from './txn-branches.ts';

/**
 * The age at which a hold gets a watch. An earlier release needs none, and a watch that starts late reports earlier changes,
 * too.
 */
const WATCH_AFTER_MS = 20;
/** The longest time that the report of a loss waits for its reason. */
const REASON_MS = 300;
/** The number of tries of a downgrade: each but the first follows another write to the hold. */
const DOWNGRADE_TRIES = 3;

/** Deletes the key of a hold that holds alone, and grants the next waiter; `undefined` if it wrote nothing. */
type HandOff = (hold: EtcdHold, sends: SendCount) => Promise<Removed | undefined>;

/** The locks that this backend holds: watches their keys for losses, and deletes the keys at the end. */
export class Holdings {
  readonly #port: EtcdPort;
  readonly #removals: KeyRemovals;
  readonly #watches: WatchStream;
  readonly #leases: LeasePool;
  readonly #sessions: EtcdWaiterSessions;
  readonly #acquisitions: Acquisitions;
  readonly #keys: Keys;
  #newOnes: { readonly acquisition: Acquisition; readonly from: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    port: EtcdPort,
    watches: WatchStream,
    leases: LeasePool,
    sessions: EtcdWaiterSessions,
    acquisitions: Acquisitions,
    keys: Keys,
  ) {
    this.#port = port;
    this.#removals = new KeyRemovals(port);
    this.#watches = watches;
    this.#leases = leases;
    this.#sessions = sessions;
    this.#acquisitions = acquisitions;
    this.#keys = keys;
  }

  /** Watches a new hold from now on: its holder learns when the key is deleted, by force, by hand or with its lease. */
  granted(acquisition: Acquisition): void {
    const { hold } = acquisition;
    if (hold === undefined || acquisition.holdWatch !== undefined) return;
    this.#newOnes.push({ acquisition, from: hold.modRevision + 1 });
    this.#timer ??= setTimeout(() => this.#watchNewOnes(), WATCH_AFTER_MS).unref();
  }

  async release(
    acquisition: Acquisition,
    call: Call,
    handOff: HandOff,
  ): Promise<'released' | 'not-held' | 'unknown'> {
    const { hold, key, hasUnansweredWrite } = acquisition;
    acquisition.ended = true;
    acquisition.holdWatch?.stop();
    if (hold === undefined) return 'not-held';
    const sends = new SendCount();
    let end: WatchEvent = { type: 'unknown' };
    try {
      const { succeeded, revision } = await this.#endHold(acquisition, hold, call, sends, handOff);
      this.forget(acquisition);
      this.#letGo(acquisition, succeeded && !hasUnansweredWrite && !sends.repeated);
      if (succeeded) {
        end = this.#watches.deleted(key, revision, endOf({ held: true, mode: hold.mode }));
        return 'released';
      }
      if (hasUnansweredWrite) this.#refuse(acquisition);
      // An earlier sending of this release may have deleted the key (docs/spec.md §2.4).
      return acquisition.releases + sends.count > 1 ? 'unknown' : 'not-held';
    } finally {
      acquisition.releases += sends.count;
      acquisition.reportEnd(end);
    }
  }

  /** Deletes the key of a hold, with the mark of its steal, and refuses its requests to queue that are still under way. */
  async #endHold(
    acquisition: Acquisition,
    hold: EtcdHold,
    call: Call,
    sends: SendCount,
    handOff: HandOff,
  ): Promise<Removed> {
    const { key, session, hasUnansweredWrite } = acquisition;
    const unmark = unmarkSteal(acquisition);
    const refuse =
      hasUnansweredWrite && session !== undefined ? [this.#sessions.refuseUnanswered(session)] : [];
    if (unmark.length + refuse.length === 0) {
      const handed = holdsAlone(hold.mode) ? await handOff(hold, sends) : undefined;
      return handed ?? (await this.#removals.remove(key, hold.createRevision, call, sends));
    }
    const compare = [createdAt(key, hold.createRevision)];
    const success = [remove(key), ...unmark, ...refuse];
    const response = await this.#port.txn({ compare, success, failure: refuse }, call, sends);
    return { succeeded: response.succeeded, revision: revisionOf(response) };
  }

  /** Ensures that the acquisition neither holds nor waits, even if one of its requests is still in flight. */
  async abandon(acquisition: Acquisition, limit: AnswerLimit): Promise<void> {
    const { key, session, hasUnansweredWrite, lease, hold } = acquisition;
    acquisition.ended = true;
    acquisition.holdWatch?.stop();
    let revision: number;
    const unmark = unmarkSteal(acquisition);
    if (hasUnansweredWrite || unmark.length > 0) {
      const isQueuing = hasUnansweredWrite && session !== undefined;
      const also = [...unmark, ...(isQueuing ? [this.#sessions.refuseUnanswered(session)] : [])];
      const [{ header }] = await Promise.all([
        this.#port.run([remove(key), ...also], limit),
        // A request that names a revoked lease writes nothing, whenever it arrives.
        hasUnansweredWrite && lease !== undefined ? this.#leases.revoke(lease, limit) : undefined,
      ]);
      revision = Number(header.revision);
    } else {
      ({ revision } = await this.#removals.remove(key, undefined, limit, new SendCount()));
    }
    if (!hasUnansweredWrite) this.#letGo(acquisition, true);
    this.forget(acquisition);
    acquisition.reportEnd(this.#watches.deleted(key, revision, hold === undefined ? 'waited' : 'unknown'));
  }

  /** Turns an exclusive hold into a shared one, in place. */
  async downgrade({ request }: Grant, call: Call): Promise<RenewalStatus> {
    const key = this.#keys.of(request.resource, request.acquisitionId);
    // A hold that changed is read again: it was renewed, or downgraded by an earlier sending of this write whose answer was
    // lost.
    for (let tries = 0; tries < DOWNGRADE_TRIES; tries += 1) {
      const [own] = entriesAt(await this.#port.run([read({ key })], call), 0);
      if (own?.held !== true) return { status: 'lost', reason: 'force-released' };
      const { mode, createRevision, modRevision } = own;
      const put = { request_put: { key, value: reencode(own, { kind: 'shared' }), ignore_lease: true } };
      const compare = [createdAt(key, createRevision), modifiedAt(key, modRevision)];
      const isShared =
        mode.kind === 'shared' ||
        (await this.#port.txn({ compare, success: [put], failure: [] }, call)).succeeded;
      if (!isShared) continue;
      const hold = this.#acquisitions.get(request.acquisitionId)?.hold;
      if (hold !== undefined) hold.mode = { kind: 'shared' };
      return { status: 'held' };
    }
    return { status: 'unknown', error: new Error('the hold changed each time it was to be downgraded') };
  }

  /** Deletes holds that have not been replaced since they were read. Returns for each whether it was deleted. */
  async end(
    holds: readonly { readonly key: Buffer; readonly createRevision: number }[],
    call: Call,
  ): Promise<boolean[]> {
    if (holds.length === 0) return [];
    const operations = holds.map(({ key, createRevision }) =>
      when([createdAt(key, createRevision)], [remove(key)]),
    );
    const response = await this.#port.run(operations, call);
    return holds.map((_, index) => succeededAt(response, index));
  }

  /** Records that the store no longer has the hold. */
  lost(acquisition: Acquisition, reason: LossReason): void {
    if (acquisition.ended) return;
    acquisition.holdWatch?.stop();
    this.forget(acquisition);
    this.#letGo(acquisition, false);
    if (acquisition.hasUnansweredWrite) this.#refuse(acquisition);
    acquisition.lose(reason);
  }

  /** A request to queue that is still under way would queue a lost acquisition anew, behind which others would wait for as long as its process does. */
  #refuse(acquisition: Acquisition): void {
    const { key, session, request } = acquisition;
    // With another session the requests that name this one fail.
    if (session === undefined || !this.#sessions.isCurrent(session) || this.#isClosed) return;
    const refusal = this.#port.run([this.#sessions.refuseUnanswered(session), read({ key })], WATCH_RETRY_MS);
    refusal
      .then(async (response) => {
        const [own] = entriesAt(response, 1);
        // Core may ask for the same id again, which finds what is there.
        if (own === undefined || own.held || this.#acquisitions.get(request.acquisitionId) !== undefined)
          return;
        await this.#removals.remove(key, own.createRevision, WATCH_RETRY_MS, new SendCount());
      })
      .catch(() => setTimeout(() => this.#refuse(acquisition), WATCH_RETRY_MS).unref());
  }

  /** Gives up the lease, once only: when a repeated release is answered a second time, another lock may use the lease. */
  #letGo(acquisition: Acquisition, usable: boolean): void {
    const { lease } = acquisition;
    acquisition.lease = undefined;
    if (lease === undefined) return;
    if (usable) this.#leases.release(lease);
    else this.#leases.drop(lease);
  }

  /** The reason why a hold is gone: another acquisition was granted after it, or not. */
  async reasonOf(acquisition: Acquisition, limit: AnswerLimit): Promise<LossReason> {
    const { hold, range } = acquisition;
    const response = await this.#port.run([read(range)], limit);
    const token = hold?.token ?? 0n;
    const taken = entriesAt(response, 0).some((entry) => entry.held && entry.token > token);
    return taken ? 'taken-over' : 'force-released';
  }

  forget(acquisition: Acquisition): void {
    this.#sessions.dequeued(acquisition);
    this.#acquisitions.forget(acquisition);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#newOnes = [];
  }

  #watchNewOnes(): void {
    this.#timer = undefined;
    const newOnes = this.#newOnes;
    this.#newOnes = [];
    for (const { acquisition, from } of newOnes) this.#watch(acquisition, from);
  }

  #watch(acquisition: Acquisition, from: number): void {
    if (acquisition.ended || acquisition.holdWatch !== undefined) return;
    acquisition.holdWatch = this.#watches.watch({
      range: { key: acquisition.key },
      puts: false,
      from,
      atOnce: false,
      notify: (event) => {
        if (event.type === 'delete') this.#deleted(acquisition);
        else if (event.type === 'unknown') this.#verify(acquisition);
      },
    });
  }

  #deleted(acquisition: Acquisition): void {
    if (acquisition.ended) return;
    this.reasonOf(acquisition, REASON_MS).then(
      (reason) => this.lost(acquisition, reason),
      () => this.lost(acquisition, 'force-released'),
    );
  }

  /** Reads the key after the history that the watch missed was compacted away. */
  #verify(acquisition: Acquisition): void {
    acquisition.holdWatch = undefined;
    const { key, hold } = acquisition;
    this.#port.run([read({ key })], WATCH_RETRY_MS).then(
      (response) => {
        const [own] = entriesAt(response, 0);
        if (own?.createRevision === hold?.createRevision) this.#watch(acquisition, revisionOf(response) + 1);
        else this.#deleted(acquisition);
      },
      // A failed read is ignored: the next renewal reads the key, too.
      () => {
        setTimeout(() => {
          if (!acquisition.ended) this.#verify(acquisition);
        }, WATCH_RETRY_MS).unref();
      },
    );
  }
}

const WATCH_RETRY_MS = 1_000;
