import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import type { Blocked } from './attempt-outcome.ts';
import type { EtcdEntry } from './etcd-entry.ts';
import type { QueueChecks } from './queue-checks.ts';
import { reactionTo } from './reaction-to.ts';
import type { ClaimBasis } from './txn-branches.ts';
import type { Watch, WatchEvent, WatchStream } from './watch-stream.ts';

/** The watch that all waiters for permits of one resource in this process share. */
interface PermitWatch {
  readonly members: Set<Acquisition>;
  readonly watch: Watch;
  /** The revision of the newest event that was received. */
  seen: number;
  checking: boolean;
  checkAgain: boolean;
}

/** What the waiters of this process watch: each the one entry that blocks it; waiters for permits share a watch. */
export class BlockerWatches {
  readonly #watches: WatchStream;
  readonly #acquisitions: Acquisitions;
  readonly #checks: QueueChecks;
  readonly #claim: (acquisition: Acquisition, basis: ClaimBasis) => void;
  readonly #permitWatches = new Map<string, PermitWatch>();

  constructor(
    watches: WatchStream,
    acquisitions: Acquisitions,
    checks: QueueChecks,
    claim: (acquisition: Acquisition, basis: ClaimBasis) => void,
  ) {
    this.#watches = watches;
    this.#acquisitions = acquisitions;
    this.#checks = checks;
    this.#claim = claim;
  }

  /** Watches what blocks an acquisition, from the revision at which it was read. */
  watch(acquisition: Acquisition, { nearest, revision, blockerUnread }: Blocked): void {
    acquisition.woken = false;
    if (blockerUnread) this.#checks.soon(acquisition);
    if (acquisition.request.mode.kind === 'permit') this.#joinPermitWatch(acquisition, revision);
    else if (!blockerUnread && nearest !== undefined) this.#watchEntry(acquisition, nearest, revision);
  }

  #watchEntry(acquisition: Acquisition, blocker: EtcdEntry, revision: number): void {
    const watchedKey = blocker.key.toString('latin1');
    if (acquisition.watchedKey === watchedKey) return;
    acquisition.stopWatching?.();
    const notify = (event: WatchEvent): void => this.#changed(acquisition, blocker, event);
    // A downgrade of the blocker is a put, and lets only readers in.
    const needsPuts = acquisition.request.mode.kind === 'shared';
    const ahead = this.#acquisitions.get(blocker.acquisitionId);
    // A live acquisition of this process reports its end itself, but not its downgrade.
    const isLocal = !needsPuts && ahead !== undefined && !ahead.ended;
    if (isLocal) ahead.next = { waiter: acquisition, notify };
    const watch = isLocal
      ? undefined
      : this.#watches.watch({
          range: { key: blocker.key },
          puts: needsPuts,
          from: revision + 1,
          // A deletion by this process itself needs no message.
          atOnce: !needsPuts && ahead === undefined,
          notify,
        });
    acquisition.watchedKey = watchedKey;
    acquisition.stopWatching = () => {
      watch?.stop();
      if (ahead?.next?.waiter === acquisition) ahead.next = undefined;
      acquisition.stopWatching = undefined;
      acquisition.watchedKey = undefined;
    };
  }

  #changed(acquisition: Acquisition, blocker: EtcdEntry, event: WatchEvent): void {
    const reaction = reactionTo(event, acquisition.request.mode, this.#isWaiting(blocker));
    if (reaction === 'wait on') return;
    acquisition.stopWatching?.();
    switch (reaction) {
      case 'claim as next':
        return this.#claim(acquisition, { type: 'next', after: blocker.key });
      case 'claim':
        return this.#claim(acquisition, { type: 'unread' });
      case 'check':
        return this.#checks.soon(acquisition);
      default:
        return reaction satisfies never;
    }
  }

  #isWaiting({ acquisitionId }: EtcdEntry): boolean {
    const acquisition = this.#acquisitions.get(acquisitionId);
    return acquisition?.position !== undefined && !acquisition.ended;
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

  #watchPermits({ request: { resource, mode }, range }: Acquisition, revision: number): PermitWatch {
    const notify = (event: WatchEvent): void => {
      if (event.type !== 'unknown') permits.seen = Math.max(permits.seen, event.revision);
      // The watch ended: waiters that are still blocked after the check make a new one.
      else this.#permitWatches.delete(resource);
      if (reactionTo(event, mode, false) !== 'wait on') void this.#checkPermits(permits);
    };
    const watch = this.#watches.watch({ range, puts: true, from: revision + 1, atOnce: false, notify });
    const members = new Set<Acquisition>();
    const permits = { members, watch, seen: revision, checking: false, checkAgain: false };
    this.#permitWatches.set(resource, permits);
    return permits;
  }

  /** Checks all waiters for permits of a resource, once more where something changed meanwhile. Never rejects. */
  async #checkPermits(permits: PermitWatch): Promise<void> {
    permits.checkAgain = true;
    if (permits.checking) return;
    permits.checking = true;
    while (permits.checkAgain && permits.members.size > 0) {
      permits.checkAgain = false;
      await this.#checks.now([...permits.members]).catch((error: unknown) => {
        for (const member of permits.members) member.wait.fail(error);
      });
    }
    permits.checking = false;
  }
}
