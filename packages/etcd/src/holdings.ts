import type { Call, LossReason } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { entriesAt, revisionOf, succeededAt } from './answer.ts';
import { createdAt, read, remove, when } from './conditions.ts';
import { type EtcdPort, type Limit, Sendings } from './etcd-port.ts';
import type { Leases } from './leases.ts';
import type { WaiterSession } from './waiter-session.ts';
import type { Watch, WatchStream } from './watch-stream.ts';

/** A lock that is given back sooner costs no watch. A watch begun late is told what happened before. */
const WATCH_AFTER_MS = 20;
/** How long a loss may wait to be told for the sake of its reason. */
const REASON_MS = 300;

/** What this backend holds: watches that it is not taken away, and gives it back. */
export class Holdings {
  readonly #port: EtcdPort;
  readonly #watches: WatchStream;
  readonly #leases: Leases;
  readonly #session: WaiterSession;
  readonly #acquisitions: Acquisitions;
  readonly #watched = new Map<Acquisition, Watch>();
  #newOnes: { readonly acquisition: Acquisition; readonly from: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    port: EtcdPort,
    watches: WatchStream,
    leases: Leases,
    session: WaiterSession,
    acquisitions: Acquisitions,
  ) {
    this.#port = port;
    this.#watches = watches;
    this.#leases = leases;
    this.#session = session;
    this.#acquisitions = acquisitions;
  }

  /** Tells the holder when its key is deleted: by force, by hand, with its lease. */
  granted(acquisition: Acquisition): void {
    const { hold } = acquisition;
    if (hold === undefined || this.#watched.has(acquisition)) return;
    this.#newOnes.push({ acquisition, from: Number(hold.token) + 1 });
    this.#timer ??= setTimeout(() => this.#watchNewOnes(), WATCH_AFTER_MS).unref();
  }

  async release(acquisition: Acquisition, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const { hold, key, session, doubtful } = acquisition;
    acquisition.ended = true;
    this.unwatch(acquisition);
    if (hold === undefined) return 'not-held';
    const sendings = new Sendings();
    const also = doubtful && session !== undefined ? [this.#session.refuseUnanswered(session)] : [];
    try {
      const { succeeded, header } = await this.#port.txn(
        { compare: [createdAt(key, hold.createRevision)], success: [remove(key), ...also], failure: also },
        call,
        sendings,
      );
      this.forget(acquisition);
      this.#letGo(acquisition, succeeded && !doubtful && !sendings.repeated);
      if (succeeded) {
        this.#watches.deleted(key, Number(header.revision));
        return 'released';
      }
      // An earlier sending of this release may have been the one that did it (docs/spec.md §2.4).
      return acquisition.releases + sendings.count > 1 ? 'unknown' : 'not-held';
    } finally {
      acquisition.releases += sendings.count;
    }
  }

  /** Afterwards it neither holds nor waits, also if a request of it is still on its way. */
  async abandon(acquisition: Acquisition, limit: Limit): Promise<void> {
    const { key, session, doubtful, lease } = acquisition;
    acquisition.ended = true;
    this.unwatch(acquisition);
    const also = doubtful && session !== undefined ? [this.#session.refuseUnanswered(session)] : [];
    const [{ header }] = await Promise.all([
      this.#port.txn({ compare: [], success: [remove(key), ...also], failure: [] }, limit),
      // A request with a lease that is no more writes nothing, whenever it arrives.
      doubtful && lease !== undefined ? this.#leases.revoke(lease, limit) : undefined,
    ]);
    if (!doubtful) this.#letGo(acquisition, true);
    this.forget(acquisition);
    this.#watches.deleted(key, Number(header.revision));
  }

  /** Deletes holds, if they are still what was seen. Gives whether each was. */
  async end(
    holds: readonly { readonly key: Buffer; readonly createRevision: number }[],
    call: Call,
  ): Promise<boolean[]> {
    if (holds.length === 0) return [];
    const operations = holds.map(({ key, createRevision }) =>
      when([createdAt(key, createRevision)], [remove(key)]),
    );
    const response = await this.#port.txn({ compare: [], success: operations, failure: [] }, call);
    return holds.map((_, index) => succeededAt(response, index));
  }

  /** The store says that it does not hold any more. */
  lost(acquisition: Acquisition, reason: LossReason): void {
    if (acquisition.ended) return;
    this.unwatch(acquisition);
    this.forget(acquisition);
    this.#letGo(acquisition, false);
    acquisition.lose(reason);
  }

  /** Only once: to a release or an abandon that was sent twice, the lease may be somebody else's by the second answer. */
  #letGo(acquisition: Acquisition, usable: boolean): void {
    const { lease } = acquisition;
    acquisition.lease = undefined;
    if (lease === undefined) return;
    if (usable) this.#leases.giveBack(lease);
    else this.#leases.drop(lease);
  }

  /** Why a hold is not there any more: somebody took its place, or not. */
  async reasonOf(acquisition: Acquisition, limit: Limit): Promise<LossReason> {
    const { hold, range } = acquisition;
    const response = await this.#port.txn({ compare: [], success: [read(range)], failure: [] }, limit);
    const token = hold?.token ?? 0n;
    const taken = entriesAt(response, 0).some((entry) => entry.held && entry.token > token);
    return taken ? 'taken-over' : 'force-released';
  }

  forget(acquisition: Acquisition): void {
    if (acquisition.place !== undefined) {
      acquisition.place = undefined;
      this.#session.leave();
    }
    this.#acquisitions.forget(acquisition);
  }

  unwatch(acquisition: Acquisition): void {
    this.#watched.get(acquisition)?.stop();
    this.#watched.delete(acquisition);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#newOnes = [];
    for (const watch of this.#watched.values()) watch.stop();
    this.#watched.clear();
  }

  #watchNewOnes(): void {
    this.#timer = undefined;
    const newOnes = this.#newOnes;
    this.#newOnes = [];
    for (const { acquisition, from } of newOnes) this.#watch(acquisition, from);
  }

  #watch(acquisition: Acquisition, from: number): void {
    if (acquisition.ended || this.#watched.has(acquisition)) return;
    const watch = this.#watches.watch({
      range: { key: acquisition.key },
      puts: false,
      from,
      tell: (event) => {
        if (event.type === 'delete') this.#deleted(acquisition);
        else if (event.type === 'unknown') this.#verify(acquisition);
      },
    });
    this.#watched.set(acquisition, watch);
  }

  #deleted(acquisition: Acquisition): void {
    if (acquisition.ended) return;
    this.reasonOf(acquisition, REASON_MS).then(
      (reason) => this.lost(acquisition, reason),
      () => this.lost(acquisition, 'force-released'),
    );
  }

  /** What happened meanwhile was compacted away: the key itself says whether it is still held. */
  #verify(acquisition: Acquisition): void {
    this.#watched.delete(acquisition);
    const { key, hold } = acquisition;
    this.#port.txn({ compare: [], success: [read({ key })], failure: [] }, WATCH_RETRY_MS).then(
      (response) => {
        const [own] = entriesAt(response, 0);
        if (own?.createRevision === hold?.createRevision) this.#watch(acquisition, revisionOf(response) + 1);
        else this.#deleted(acquisition);
      },
      // The next renewal looks, too.
      () => {
        setTimeout(() => {
          if (!acquisition.ended) this.#verify(acquisition);
        }, WATCH_RETRY_MS).unref();
      },
    );
  }
}

const WATCH_RETRY_MS = 1_000;
