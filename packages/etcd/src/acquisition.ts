import type {
  AcquireRequest,
  Call,
  Grant,
  LocalWaiter,
  LockMode,
  LossReason,
  TurnWait,
} from '@locks/core/backend';
import { ChangedMeanwhileError } from './etcd-errors.ts';
import type { QueuePosition } from './etcd-entry.ts';
import type { KeyRange, Keys } from './keys.ts';
import type { EtcdLease } from './lease-pool.ts';
import type { EtcdWaiterSession } from './waiter-session.ts';
import type { Watch, WatchEvent } from './watch-stream.ts';

/** The state of one hold, as this backend knows it. */
export interface EtcdHold {
  readonly grant: Grant;
  readonly token: bigint;
  readonly createRevision: number;
  /** The revision of the key when the grant was read. */
  readonly modRevision: number;
  /** Aborts, with the reason, when the store reports that the hold ended. */
  readonly lost: AbortController;
  lease: EtcdLease;
  /** The lease that the key may be attached to: a renewal was to move the key there and got no answer. */
  movedTo: EtcdLease | undefined;
  /** The mode that it has now: a downgrade changes it. */
  mode: LockMode;
  /** The server does not expire the hold before this moment of `performance.now()`. */
  endsAt: number;
}

/** The state of one acquisition id, from its first attempt until it is released, abandoned or lost. */
export class Acquisition implements LocalWaiter {
  readonly request: AcquireRequest;
  readonly wait: TurnWait;
  call: Call;
  grant: Grant | undefined;
  lastCallAt: number;
  readonly key: Buffer;
  readonly range: KeyRange;
  /** The key of the acquisition whose hold this one adopts. */
  readonly adoptedKey: Buffer | undefined;
  /** The key of the mark that a steal of this resource leaves while its hold lasts. */
  readonly stealMark: Buffer;
  /** The lease that is reserved for the grant, or that the hold is attached to. */
  lease: EtcdLease | undefined;
  /** The session that the requests to queue named. */
  session: EtcdWaiterSession | undefined;
  position: QueuePosition | undefined;
  /** The acquisitions that were queued in the same transaction, in their order; unknown if its answer was lost. */
  batch: readonly Acquisition[] | undefined;
  hold: EtcdHold | undefined;
  /** The watch on the key of the hold. */
  holdWatch: Watch | undefined;
  /** Whether the queue changed while no call of `awaitTurn` was waiting. */
  woken = false;
  /** The function that ends the watch for the turn of this waiter. */
  stopWatching: (() => void) | undefined;
  /** The exclusive waiter of this process behind this acquisition: it hears of the end by `reportEnd`, and asks the server for no watch. */
  next: { readonly waiter: Acquisition; readonly notify: (event: WatchEvent) => void } | undefined;
  /** The key that this waiter watches, so that the same watch is not made twice. */
  watchedKey: string | undefined;
  /** Whether a request that may write the key is under way, was not answered, or was sent more than once. */
  hasUnansweredWrite = false;
  /** Set once the acquisition is abandoned, released or lost; later replies are ignored. */
  ended = false;
  /** The number of times that the release was sent. */
  releases = 0;
  /** The time of the first abandon, on `performance.now()`. */
  abandonedAt: number | undefined;
  #lost = false;
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ request, wait, call, grant, lastCallAt }: LocalWaiter, keys: Keys) {
    const { resource, acquisitionId } = request;
    this.request = request;
    this.wait = wait;
    this.call = call;
    this.grant = grant;
    this.lastCallAt = lastCallAt;
    this.key = keys.of(resource, acquisitionId);
    this.range = keys.rangeOf(resource);
    this.adoptedKey = request.adopts === undefined ? undefined : keys.of(resource, request.adopts);
    this.stealMark = keys.stealMark(resource);
  }

  /** Runs the attempts of this id one after another. */
  serialized<T>(work: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    const result = this.#last.then(work).finally(() => {
      this.#pending -= 1;
      this.lastCallAt = performance.now();
    });
    this.#last = result.catch(() => {});
    return result;
  }

  get busy(): boolean {
    return this.#pending > 0;
  }

  /** Whether an acquisition that was queued in the same transaction may still wait ahead of this one. */
  get mayHaveBatchAhead(): boolean {
    if (this.position === undefined || this.position.rank === 0) return false;
    const { rank, createRevision } = this.position;
    const ahead = this.batch?.slice(0, rank);
    return ahead === undefined || ahead.some(({ position }) => position?.createRevision === createRevision);
  }

  /** Whether the store ended the hold. */
  get isLost(): boolean {
    return this.#lost;
  }

  assertWanted(): void {
    const { acquisitionId } = this.request;
    // Core has not abandoned the id of the lost hold, so it may repeat the attempt, which starts anew.
    if (this.#lost) throw new ChangedMeanwhileError(`The hold of ${acquisitionId} ended meanwhile.`);
    if (this.ended) throw new Error(`The acquisition ${acquisitionId} was abandoned meanwhile.`);
  }

  /** Tells the next waiter of this process that this acquisition ended, or that it must look (docs/spec.md §7.3). */
  reportEnd(event: WatchEvent): void {
    this.next?.notify(event);
  }

  lose(reason: LossReason): void {
    this.ended = true;
    this.#lost = true;
    this.hold?.lost.abort(reason);
    this.reportEnd({ type: 'unknown' });
  }
}
