import type { AcquireRequest, Call, Grant, LockMode, LossReason } from '@locks/core/backend';
import type { KeyRange } from './keys.ts';
import type { Lease } from './leases.ts';
import { ChangedMeanwhileError } from './retryable.ts';
import type { Session } from './waiter-session.ts';

/** What is known of an acquisition that holds. */
export interface Hold {
  readonly grant: Grant;
  readonly token: bigint;
  readonly createRevision: number;
  /** Aborted with the reason when the store says that the hold ended. */
  readonly lost: AbortController;
  lease: Lease;
  /** A lease that the key may hang on: it was to move there, and no answer came. */
  movedTo?: Lease;
  /** Downgraded. */
  shared: boolean;
  /** Not before this has the server ended it by itself, on `performance.now()`. */
  endsAt: number;
}

/** The place in the queue. */
export interface Place {
  readonly createRevision: number;
  /** Among those that were queued in the same step. */
  readonly rank?: number;
  /** Changes when the entry is written again: by a grant, or with another limit. */
  readonly modRevision: number;
  /** With the limit of today. */
  readonly mode: LockMode;
}

/** Core waits for its turn. */
export interface Awaiting {
  readonly call: Call;
  readonly settle: (grant: Grant | undefined) => void;
  readonly fail: (error: unknown) => void;
}

/** One acquisition id, from its first attempt until it is released, abandoned or lost. */
export class Acquisition {
  readonly request: AcquireRequest;
  readonly key: Buffer;
  readonly range: KeyRange;
  /** Put aside for the grant, or holding. */
  lease: Lease | undefined;
  /** That its requests to queue named. */
  session: Session | undefined;
  place: Place | undefined;
  /** Those that were queued in the same step, in their order; unknown where its answer was lost. */
  mates: readonly Acquisition[] | undefined;
  hold: Hold | undefined;
  awaiting: Awaiting | undefined;
  /** Something happened while nobody was waiting to be told. */
  woken = false;
  /** Ends the watch for its turn. */
  unfollow: (() => void) | undefined;
  /** What it waits for, so that the same watch is not made again. */
  following: string | undefined;
  /** A request that may write its key is on its way, was not answered, or was sent more than once. */
  doubtful = false;
  /** Given up or released: what is answered later no longer counts. */
  ended = false;
  /** How often its release was sent. */
  releases = 0;
  givenUpAt: number | undefined;
  /** When core last asked for it, on `performance.now()`. */
  heardAt = performance.now();
  /** The store ended its hold. */
  #lost = false;
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(request: AcquireRequest, key: Buffer, range: KeyRange) {
    this.request = request;
    this.key = key;
    this.range = range;
  }

  /** Attempts of one id come one after another. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    const result = this.#last.then(work).finally(() => {
      this.#pending -= 1;
      this.heardAt = performance.now();
    });
    this.#last = result.catch(() => {});
    return result;
  }

  get busy(): boolean {
    return this.#pending > 0;
  }

  /** Whether somebody who was queued in the same step may still wait before it. */
  get mayHaveMatesAhead(): boolean {
    const { rank = 0, createRevision } = this.place ?? {};
    if (rank === 0) return false;
    const ahead = this.mates?.slice(0, rank);
    return ahead === undefined || ahead.some(({ place }) => place?.createRevision === createRevision);
  }

  assertWanted(): void {
    const { acquisitionId } = this.request;
    // Nobody gave it up: asked for once more it is a new one.
    if (this.#lost) throw new ChangedMeanwhileError(`The hold of ${acquisitionId} ended meanwhile.`);
    if (this.ended) throw new Error(`The acquisition ${acquisitionId} was given up meanwhile.`);
  }

  lose(reason: LossReason): void {
    this.ended = true;
    this.#lost = true;
    this.hold?.lost.abort(reason);
  }
}
