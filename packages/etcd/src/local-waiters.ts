import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import { type Acquisitions, byResource } from './acquisitions.ts';
import { headAt, revisionOf } from './txn-responses.ts';
import type { Attempts, AttemptOutcome } from './attempts.ts';
import { read, readHead } from './conditions.ts';
import { decodeEntry, type EtcdEntry } from './etcd-entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Holdings } from './holdings.ts';
import type { LocalHandOffs } from './local-hand-offs.ts';
import { positionOf, type EtcdTurn, QueueTurns } from './queue-turns.ts';
import type { WaiterSessionListener } from './waiter-sessions.ts';
import type { Watch, WatchEvent, WatchStream } from './watch-stream.ts';

const READ_MS = 3_000;
const CHECK_EVERY_MS = 5_000;
const RETRY_MS = 500;
/** The number of waiters of one resource above which the periodic check reads only the head of the queue. */
const MANY = 200;
/** The pause after a check of many waiters, as a multiple of its duration. */
const PAUSE_FACTOR = 3;
/**
 * The most grants of one transaction: each needs a read, a conditional write and a condition, and a server accepts 128
 * operations.
 */
const GRANTS_AT_ONCE = 40;
/**
 * The time without a call after which core has forgotten an entry, or its abandon, and the entry must not block the others: core
 * attempts, waits or abandons again sooner.
 */
const UNATTENDED_MS = 2_500;
const ABANDON_MS = 3_000;

/** The watch that all waiters for permits of one resource in this process share. */
interface PermitWatch {
  readonly members: Set<Acquisition>;
  readonly watch: Watch;
  /** The revision of the newest event that was received. */
  seen: number;
  checking: boolean;
  checkAgain: boolean;
}

/** The waiters of this process. Each watches the one entry that blocks it; waiters for permits share a watch. */
export class EtcdLocalWaiters implements WaiterSessionListener {
  readonly #port: EtcdPort;
  readonly #watches: WatchStream;
  readonly #attempts: Attempts;
  readonly #handOffs: LocalHandOffs;
  readonly #holdings: Holdings;
  readonly #acquisitions: Acquisitions;
  readonly #permitWatches = new Map<string, PermitWatch>();
  #checkedAt = 0;
  /** The waiters that the next check reads: their entries may be gone, or their turn may have come. */
  readonly #toCheck = new Set<Acquisition>();
  #checkScheduled: NodeJS.Immediate | NodeJS.Timeout | undefined;
  #checking = false;

  constructor(
    port: EtcdPort,
    watches: WatchStream,
    attempts: Attempts,
    handOffs: LocalHandOffs,
    holdings: Holdings,
    acquisitions: Acquisitions,
  ) {
    this.#port = port;
    this.#watches = watches;
    this.#attempts = attempts;
    this.#handOffs = handOffs;
    this.#holdings = holdings;
    this.#acquisitions = acquisitions;
  }

  async awaitTurn({ acquisitionId }: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const acquisition = this.#acquisitions.get(acquisitionId);
    if (acquisition?.position === undefined || acquisition.ended) return undefined;
    const turn = acquisition.wait.begin(call);
    if (acquisition.woken) this.#wake(acquisition);
    const grant = await turn;
    if (grant === undefined) return undefined;
    this.#holdings.granted(acquisition);
    this.#handOffs.prepare(acquisition, call);
    return grant;
  }

  /** Releases a hold; where its next waiter is one of this process, in the transaction that grants that one. */
  async release(acquisition: Acquisition, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    return await this.#holdings.release(acquisition, call, (hold, sends) =>
      this.#handOffs.release(acquisition, hold, sends, (waiter, grant) => {
        if (grant === undefined) this.#wake(waiter);
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
    this.#checkPeriodically();
    this.#abandonUnattended();
  }

  sessionLost(): void {
    for (const acquisition of this.#acquisitions.all())
      if (acquisition.position !== undefined) this.#checkSoon(acquisition);
  }

  /** Watches the entry that blocks an acquisition, from the revision at which it was read. */
  watchBlocker(acquisition: Acquisition, outcome: Extract<AttemptOutcome, { status: 'blocked' }>): void {
    const { nearest, revision, blockerUnread } = outcome;
    acquisition.woken = false;
    if (blockerUnread === true) this.#checkSoon(acquisition);
    if (acquisition.request.mode.kind === 'permit') return this.#joinPermitWatch(acquisition, revision);
    if (blockerUnread === true || nearest === undefined) return;
    const watched = nearest.key.toString('latin1');
    if (acquisition.watchedKey === watched) return;
    acquisition.stopWatching?.();
    const shared = acquisition.request.mode.kind === 'shared';
    const notify = (event: WatchEvent): void => {
      if (event.type === 'put' && decodeEntry(event.kv).mode.kind !== 'shared') return;
      acquisition.stopWatching?.();
      const was = event.type === 'delete' ? event.was : undefined;
      if (!shared && was === 'held alone') return this.#wake(acquisition, undefined, nearest.key);
      // A check is made instead of a claim: readers are granted together; behind a waiter that left there are usually others;
      // and if the deleted entry still waits here, its whole session or queue was probably deleted.
      if (shared || was === 'waited' || event.type === 'unknown' || this.#isWaiting(nearest))
        return this.#checkSoon(acquisition);
      this.#wake(acquisition);
    };
    const ahead = this.#acquisitions.get(nearest.acquisitionId);
    // A live acquisition of this process reports its end itself. A downgrade lets only readers in.
    const isLocal = !shared && ahead !== undefined && !ahead.ended;
    if (isLocal) ahead.next = { waiter: acquisition, notify };
    const watch = isLocal
      ? undefined
      : this.#watches.watch({
          range: { key: nearest.key },
          // A writer that is downgraded to a reader lets readers in.
          puts: shared,
          from: revision + 1,
          // A deletion by this process itself needs no message.
          atOnce: !shared && ahead === undefined,
          notify,
        });
    acquisition.watchedKey = watched;
    acquisition.stopWatching = () => {
      watch?.stop();
      if (ahead?.next?.waiter === acquisition) ahead.next = undefined;
      acquisition.stopWatching = undefined;
      acquisition.watchedKey = undefined;
    };
  }

  /** Ends the wait of an acquisition that was granted or abandoned. */
  #stopWaiting(acquisition: Acquisition): void {
    acquisition.stopWatching?.();
    acquisition.wait.end();
  }

  /** Checks all waiters now and then, in case a message was lost. One request serves a hundred resources. */
  #checkPeriodically(): void {
    const now = performance.now();
    if (now < this.#checkedAt + CHECK_EVERY_MS) return;
    this.#checkedAt = now;
    for (const groups of byResource(this.#acquisitions.all())) {
      this.#check(groups, { onlyHeads: true }).catch(() => {
        // A failed check is ignored: the next periodic check, or core's own attempt after a while, repeats it.
      });
    }
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

  #isWaiting({ acquisitionId }: EtcdEntry): boolean {
    const acquisition = this.#acquisitions.get(acquisitionId);
    return acquisition?.position !== undefined && !acquisition.ended;
  }

  /** Schedules a check. All waiters of one iteration of the event loop share it, and checks do not overlap. */
  #checkSoon(acquisition: Acquisition): void {
    this.#toCheck.add(acquisition);
    if (!this.#checking) this.#checkScheduled ??= setImmediate(() => void this.#checkScheduledWaiters());
  }

  async #checkScheduledWaiters(): Promise<void> {
    this.#checkScheduled = undefined;
    this.#checking = true;
    const startedAt = performance.now();
    // The server reports one deletion to several watches in any order: all readers of a resource are checked together, or
    // they would be granted out of order.
    const resources = new Set([...this.#toCheck].map(({ request }) => request.resource));
    for (const each of this.#acquisitions.all()) {
      const { mode, resource } = each.request;
      if (mode.kind === 'shared' && each.position !== undefined && resources.has(resource))
        this.#toCheck.add(each);
    }
    const waiters = [...this.#toCheck];
    this.#toCheck.clear();
    let failed = false;
    for (const groups of byResource(waiters)) {
      await this.#check(groups).catch(() => {
        failed = true;
        for (const acquisition of groups.flat()) this.#toCheck.add(acquisition);
      });
    }
    this.#checking = false;
    if (this.#toCheck.size === 0) return;
    // A long queue takes long to read, so it is not read continuously.
    const pauseMs = waiters.length > MANY ? PAUSE_FACTOR * (performance.now() - startedAt) : 0;
    this.#checkScheduled = setTimeout(
      () => void this.#checkScheduledWaiters(),
      failed ? RETRY_MS : pauseMs,
    ).unref();
  }

  close(): void {
    clearImmediate(this.#checkScheduled as NodeJS.Immediate | undefined);
    clearTimeout(this.#checkScheduled as NodeJS.Timeout | undefined);
    this.#toCheck.clear();
    for (const acquisition of this.#acquisitions.all()) this.#stopWaiting(acquisition);
  }

  #wake(acquisition: Acquisition, turn?: EtcdTurn, after?: Buffer): void {
    const { call } = acquisition.wait;
    acquisition.woken = call === undefined;
    if (call === undefined) return;
    acquisition
      .serialized(async () => {
        // An earlier task of this acquisition has granted or abandoned it.
        if (acquisition.ended || acquisition.hold !== undefined) return void acquisition.wait.end();
        this.#finish(acquisition, await this.#attempts.claim(acquisition, call, turn, after));
      })
      .catch((error: unknown) => void acquisition.wait.fail(error));
  }

  /** Reports the result of a claim to the waiter. */
  #finish(acquisition: Acquisition, outcome: AttemptOutcome): void {
    switch (outcome.status) {
      case 'granted':
        acquisition.stopWatching?.();
        acquisition.wait.end(outcome.grant);
        return;
      case 'blocked':
        if (!acquisition.ended) this.watchBlocker(acquisition, outcome);
        return;
      case 'not-queued':
      case 'conflict':
        acquisition.stopWatching?.();
        acquisition.wait.end();
        return;
      default:
        return outcome satisfies never;
    }
  }

  #joinPermitWatch(acquisition: Acquisition, revision: number): void {
    const { resource } = acquisition.request;
    const permits = this.#permitWatches.get(resource) ?? this.#watchPermits(acquisition, revision);
    if (permits.members.has(acquisition)) return;
    permits.members.add(acquisition);
    acquisition.stopWatching = () => {
      acquisition.stopWatching = undefined;
      permits.members.delete(acquisition);
      if (permits.members.size > 0 || this.#permitWatches.get(resource) !== permits) return;
      this.#permitWatches.delete(resource);
      permits.watch.stop();
    };
    // Events since that revision were reported before this waiter joined.
    if (permits.seen > revision) void this.#checkPermits(permits);
  }

  #watchPermits({ request: { resource }, range }: Acquisition, revision: number): PermitWatch {
    const notify = (event: WatchEvent): void => {
      if (event.type !== 'unknown') {
        permits.seen = Math.max(permits.seen, event.revision);
        // A new entry is behind all waiters.
        if (event.type === 'put' && event.kv.version === '1') return;
      } else {
        // The watch ended: waiters that are still blocked after the check make a new one.
        this.#permitWatches.delete(resource);
      }
      void this.#checkPermits(permits);
    };
    const watch = this.#watches.watch({ range, puts: true, from: revision + 1, notify });
    const members = new Set<Acquisition>();
    const permits = { members, watch, seen: revision, checking: false, checkAgain: false };
    this.#permitWatches.set(resource, permits);
    return permits;
  }

  /**
   * Reads the entries of resources, one group of waiters each. Wakes those whose turn has come or whose entry is gone; the others
   * watch what blocks them.
   *
   * @param onlyHeads - of a long queue only the head is read
   */
  async #check(
    groups: readonly (readonly Acquisition[])[],
    { onlyHeads = false }: { readonly onlyHeads?: boolean } = {},
  ): Promise<void> {
    const isHead = groups.map((group) => onlyHeads && group.length > MANY);
    const reads = groups.map(([any], index) => {
      const { range } = any as Acquisition;
      return isHead[index] === true ? readHead(range) : read(range);
    });
    const call = ownCall(READ_MS);
    const response = await this.#port.run(reads, call);
    const revision = revisionOf(response);
    for (const [index, group] of groups.entries()) {
      const turns = new QueueTurns(headAt(response, index));
      const together: Acquisition[] = [];
      for (const member of group) {
        if (member.position === undefined || member.ended) continue;
        // A waiter beyond the head is blocked; those ahead of it will wake it.
        if (isHead[index] === true && turns.entryOf(member.request.acquisitionId) === undefined) continue;
        const status = this.#attempts.queueStatus(member, turns, revision, call);
        const { kind } = member.request.mode;
        if (status.status === 'free' && (kind === 'shared' || (kind === 'permit' && isHead[index] !== true)))
          together.push(member);
        // A hold that was stolen may be beyond the head of a long queue: the claim reads the queue itself.
        else if (status.status === 'free') this.#wake(member, isHead[index] ? undefined : { status: 'free' });
        else if (status.status === 'not-queued') this.#wake(member);
        else this.watchBlocker(member, status);
      }
      void this.#wakeTogether(together);
    }
  }

  /** Grants readers, or permits, whose turn has come in queue order, many in one transaction. Never rejects. */
  async #wakeTogether(waiters: readonly Acquisition[]): Promise<void> {
    const ordered = waiters.toSorted((a, b) => orderOf(a) - orderOf(b));
    const waiting: Acquisition[] = [];
    for (const each of ordered) {
      if (each.wait.call === undefined || each.busy) this.#wake(each, { status: 'free' });
      else waiting.push(each);
    }
    // Each waiter stays busy until all are done: a second check must not wake one that is being granted.
    let markDone = (): void => {};
    const done = new Promise<void>((resolve) => (markDone = resolve));
    for (const each of waiting) void each.serialized(() => done);
    const calls = new Map(waiting.flatMap((each) => (each.wait.call ? [[each, each.wait.call]] : [])));
    const rest: Acquisition[] = [];
    for (let start = 0; start < waiting.length; start += GRANTS_AT_ONCE) {
      const now = waiting.slice(start, start + GRANTS_AT_ONCE);
      try {
        const outcomes = await this.#attempts.claimTogether(now, calls);
        for (const [each, outcome] of outcomes) {
          if (outcome.status === 'again') rest.push(each);
          else this.#finish(each, outcome);
        }
      } catch (error) {
        for (const each of now) each.wait.fail(error);
      }
    }
    markDone();
    for (const each of rest) this.#wake(each);
  }

  /** Checks all waiters for permits of a resource, once more where something changed meanwhile. Never rejects. */
  async #checkPermits(permits: PermitWatch): Promise<void> {
    permits.checkAgain = true;
    if (permits.checking) return;
    permits.checking = true;
    while (permits.checkAgain && permits.members.size > 0) {
      permits.checkAgain = false;
      await this.#check([[...permits.members]]).catch((error: unknown) => {
        for (const member of permits.members) member.wait.fail(error);
      });
    }
    permits.checking = false;
  }
}

function ownCall(ms: number): Call {
  return { now: () => performance.now(), deadline: performance.now() + ms };
}

function orderOf({ position }: Acquisition): number {
  return position === undefined ? Number.POSITIVE_INFINITY : positionOf(position);
}
