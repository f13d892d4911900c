import { areInConflict, type Conflict, type LockMode } from '@locks/core/backend';
import { type EtcdEntry, type QueuePosition, RANKS } from './etcd-entry.ts';

/** Whether an acquisition may be granted, given the entries of its resource. */
export type EtcdTurn =
  | { readonly status: 'free' }
  /**
   * `nearest` is the entry to wait for and watch; absent where nobody is ahead, and more permits are asked for than there
   * are. `byHolders`: no waiter is ahead.
   */
  | { readonly status: 'blocked'; readonly nearest: EtcdEntry | undefined; readonly byHolders: boolean };

const FREE: EtcdTurn = { status: 'free' };

/** The position in the queue as one number: the revision, and the rank among the entries of it. */
export function positionOf({ createRevision, rank }: Pick<QueuePosition, 'createRevision' | 'rank'>): number {
  return createRevision + rank / RANKS;
}

/** Sorts entries: the holders first, then the waiters in queue order. */
export function inQueueOrder(entries: readonly EtcdEntry[]): EtcdEntry[] {
  return entries.toSorted((a, b) => Number(b.held) - Number(a.held) || positionOf(a) - positionOf(b));
}

/**
 * The rule of the queue (docs/spec.md §15.2), computed in one pass for all waiters, since ten thousand waiters of a
 * process may ask about the same queue. The entries may be out of date: a grant never changes the turn of those ahead of
 * it, and later entries are behind. Only a steal is different, and the conditions of the writes detect it.
 */
export class QueueTurns {
  readonly #entries: readonly EtcdEntry[];
  readonly #indexes = new Map<string, number>();
  /**
   * The nearest earlier entry that is not shared, and the weight of all earlier entries; for each index, and the one after the
   * last.
   */
  readonly #unshared: (EtcdEntry | undefined)[] = [undefined];
  readonly #weights: number[] = [0];

  /** `entries` must be in queue order. */
  constructor(entries: readonly EtcdEntry[]) {
    this.#entries = entries;
    let unshared: EtcdEntry | undefined;
    let weight = 0;
    for (const [index, entry] of entries.entries()) {
      this.#indexes.set(entry.acquisitionId, index);
      if (entry.mode.kind !== 'shared') unshared = entry;
      weight += permitsTakenBy(entry.mode);
      this.#unshared.push(unshared);
      this.#weights.push(weight);
    }
  }

  entryOf(acquisitionId: string): EtcdEntry | undefined {
    return this.#entries[this.#indexes.get(acquisitionId) ?? -1];
  }

  /** The turn of an entry of the queue. */
  of({ acquisitionId, mode }: EtcdEntry): EtcdTurn {
    return this.at(this.#indexes.get(acquisitionId) ?? this.#entries.length, mode);
  }

  /** The turn of an acquisition that would be ahead of the entry with this index. */
  at(index: number, mode: LockMode): EtcdTurn {
    switch (mode.kind) {
      case 'exclusive':
        return blockedBy(this.#entries[index - 1]);
      case 'shared':
        return blockedBy(this.#unshared[index]);
      case 'permit': {
        // Waiters ahead count as if they held: each of them may be granted independently before this one.
        const fits = (this.#weights[index] ?? 0) + mode.weight <= mode.limit;
        const nearest = this.#entries[index - 1];
        return fits ? FREE : { status: 'blocked', nearest, byHolders: nearest?.held === true };
      }
      default:
        return mode satisfies never;
    }
  }

  /** The turn of an acquisition that is not queued: it overtakes no waiter, not even as a reader other readers. */
  ofNewcomer(mode: LockMode): EtcdTurn {
    const last = this.#entries.at(-1);
    return last !== undefined && !last.held ? blockedBy(last) : this.at(this.#entries.length, mode);
  }
}

/** The turn of an acquisition that is not among the entries, and waits at `position`. */
export function turnOf(entries: readonly EtcdEntry[], mode: LockMode, position: number): EtcdTurn {
  const behind = entries.findIndex((entry) => !entry.held && positionOf(entry) >= position);
  return new QueueTurns(entries).at(behind < 0 ? entries.length : behind, mode);
}

/** Holders come first in queue order: if the nearest entry holds, all entries ahead hold. */
function blockedBy(nearest: EtcdEntry | undefined): EtcdTurn {
  return nearest === undefined ? FREE : { status: 'blocked', nearest, byHolders: nearest.held };
}

/** The number of permits that an entry takes: an entry of another mode leaves none to the entries behind it. */
function permitsTakenBy(mode: LockMode): number {
  return mode.kind === 'permit' ? mode.weight : Number.POSITIVE_INFINITY;
}

/** The conflict of a mode with that of an entry, if there is one (docs/spec.md §15.7). */
export function conflictWith(entries: readonly EtcdEntry[], mode: LockMode): Conflict | undefined {
  const other = entries.find((entry) => areInConflict(entry.mode, mode));
  return other && { status: 'conflict', with: other.mode };
}
