// One file, since a waiter's turn may come by the reply of its enqueue, by a message or by a check, and only the first counts.
import { type AcquireRequest, type Call, type Grant, LocalWaiters } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import type { RedisGrant } from './grant.ts';
import { HoldEndTimers } from './hold-end-timers.ts';
import { keysOfLock } from './keys.ts';
import type { CheckedRedisOptions } from './options.ts';
import type { RedisPort } from './port.ts';
import { decodeMessage, decodeRelease, type RedisAttemptReply, type RedisHandOff } from './replies.ts';
import { mayAlwaysRepeat, runScript } from './run-script.ts';
import { Subscription } from './subscription.ts';
import { formatMember } from './value.ts';
import { type CheckEvents, RedisWaiterHeartbeat } from './waiter-heartbeat.ts';
import type { RedisWaiter } from './waiter.ts';

/** An enqueue that is in flight or that failed: it may have run, and is repeated or abandoned. */
interface Enqueue {
  /** The reply address of the enqueue. A repetition sends the same one, since it is a part of the member of the queue. */
  readonly replyAddress: string;
  isRepeated: boolean;
  /** The token of a message that arrived before the reply of the enqueue, or instead of it. */
  messageToken: number | undefined;
}

/** The parameters of an enqueue. */
export interface EnqueueParams {
  readonly replyAddress: string;
  /** Whether a request of this process moved the end of the queue within the interval of the checks. */
  readonly isQueueRefreshed: boolean;
}

/**
 * The waiters of this process, and how grants find them. An acquisition that asks to wait is known in one of three ways:
 *
 *     register → enqueue in flight → onQueued → waiter → hand-off → holds
 *                       └──── granted by the reply itself: unknown, or holds where messages may be late
 *
 * `forget` ends each of them. The file is long since each of these steps reads what the others keep of a waiter.
 */
export class SubscribedWaiters implements CheckEvents {
  readonly subscription: Subscription;
  readonly heartbeat: RedisWaiterHeartbeat;
  readonly #port: RedisPort;
  readonly #options: CheckedRedisOptions;
  readonly #enqueues = new Map<string, Enqueue>();
  readonly #waiters: LocalWaiters<RedisWaiter>;
  /**
   * The acquisitions that hold after they waited, each with the earliest end of its hold, by `performance.now()`: messages of
   * their hand-off that arrive late are ignored.
   */
  readonly #holdUntil = new Map<string, number>();
  #sweepTimer: NodeJS.Timeout | undefined;
  /** The time before the last request that moved the end of a queue, by resource, on core's clock. */
  readonly #queueRefreshedAt = new Map<string, number>();
  readonly #holdEnds = new HoldEndTimers((resources) => this.#checkEnds(resources));
  #moveTimer: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(port: RedisPort, options: CheckedRedisOptions) {
    this.#port = port;
    this.#options = options;
    this.#waiters = new LocalWaiters({
      make: (waiter): RedisWaiter => ({
        ...waiter,
        keys: options.lockKeys.of(waiter.request.resource),
        position: 0,
        replyAddress: '',
        isMoving: false,
        isRepeated: false,
        confirmedAt: 0,
        lastToken: 0,
      }),
      pollEveryMs: options.maxPollMs,
      poll: () => this.#beat(),
      emptied: (resource) => this.#queueRefreshedAt.delete(resource),
    });
    this.subscription = new Subscription(port, options.prefix, {
      message: (text) => this.#onMessage(text),
      // Messages from before are lost, and earlier waiters have another channel in the queue, or none yet.
      listening: (replyAddress) =>
        this.heartbeat.checkNow(
          this.#waiters
            .all()
            .filter(({ keys }) => this.subscription.replyAddressOf(keys.slot) === replyAddress),
        ),
      changed: () => this.moveSoon(),
    });
    this.heartbeat = new RedisWaiterHeartbeat(port, options, this.subscription, this);
  }

  /**
   * Called before an enqueue is sent; {@link onQueued}, {@link onGranted} or {@link onRefused} follows with its reply.
   */
  register({ acquisitionId, resource }: AcquireRequest, slot: number, sentAt: number): EnqueueParams {
    const known = this.#enqueues.get(acquisitionId) ?? this.#waiters.get(acquisitionId);
    if (known !== undefined) {
      known.isRepeated = true;
      return { replyAddress: known.replyAddress, isQueueRefreshed: false };
    }
    const replyAddress = this.subscription.replyAddressOf(slot);
    this.#enqueues.set(acquisitionId, { replyAddress, isRepeated: false, messageToken: undefined });
    const refreshedAt = this.#queueRefreshedAt.get(resource) ?? -Infinity;
    return { replyAddress, isQueueRefreshed: sentAt - refreshedAt < this.heartbeat.intervalMs };
  }

  /** Records that the enqueue was answered with "waiting". */
  onQueued(
    request: AcquireRequest,
    call: Call,
    sentAt: number,
    { replyAddress, isQueueRefreshed }: EnqueueParams,
    { position, lastToken, endsInMs }: RedisAttemptReply & { readonly status: 'waiting' },
  ): void {
    const { acquisitionId, resource } = request;
    const enqueue = this.#enqueues.get(acquisitionId);
    const known = this.#waiters.get(acquisitionId);
    // The enqueue was abandoned meanwhile.
    if (enqueue === undefined && known === undefined) return;
    // A hand-off that came after this answer was told before it.
    if (known !== undefined && (known.grant?.fencingToken ?? 0n) > lastToken) return this.#leaveQueue(known);
    this.#enqueues.delete(acquisitionId);
    // A waiter that is known stays the same object, since a check of it may be in flight.
    const waiter = this.#waiters.register(request, call);
    const { slot } = waiter.keys;
    waiter.position = position;
    waiter.replyAddress = replyAddress;
    waiter.isRepeated = false;
    waiter.confirmedAt = sentAt;
    waiter.lastToken = lastToken;
    waiter.grant = undefined;
    if (!isQueueRefreshed) this.#queueRefreshedAt.set(resource, sentAt);
    if (enqueue?.messageToken !== undefined) this.#onTurn(waiter, enqueue.messageToken);
    this.subscription.open(slot);
    // The channel was opened while the enqueue was under way, or the slot has moved.
    if (replyAddress !== this.subscription.replyAddressOf(slot)) this.moveSoon();
    this.#mayEnd(resource, endsInMs);
  }

  /** Records that the attempt was answered with a grant, perhaps an earlier one, whose message may arrive late. */
  onGranted(request: AcquireRequest, validForMs: number, mayBeOlder: boolean): void {
    const { acquisitionId } = request;
    const known = this.#enqueues.get(acquisitionId) ?? this.#waiters.remove(request);
    this.#enqueues.delete(acquisitionId);
    if (mayBeOlder || known?.isRepeated === true) this.#hold(acquisitionId, validForMs);
  }

  /**
   * Records that the enqueue was answered with a conflict, or that so many wait. A waiter stays one until it is abandoned.
   * Returns whether it is one: a check in flight may have moved it to another reply address, so the script did not find it.
   */
  onRefused({ acquisitionId }: AcquireRequest): boolean {
    this.#enqueues.delete(acquisitionId);
    return this.#waiters.get(acquisitionId) !== undefined;
  }

  /** Records that a lease was renewed. */
  extend(acquisitionId: string, validForMs: number): void {
    if (this.#holdUntil.has(acquisitionId)) this.#hold(acquisitionId, validForMs);
  }

  /** Forgets an acquisition: for this process it neither waits nor holds any more. */
  forget(request: AcquireRequest): void {
    this.#enqueues.delete(request.acquisitionId);
    this.#holdUntil.delete(request.acquisitionId);
    this.#waiters.remove(request);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    if (this.#waiters.get(request.acquisitionId) === undefined) return Promise.resolve(undefined);
    return this.#waiters.awaitTurn(request, call);
  }

  /** Returns the error of the last check of a waiter; `undefined` if it did not fail. */
  checkErrorOf({ acquisitionId }: AcquireRequest): unknown {
    return this.#waiters.get(acquisitionId)?.checkError;
  }

  /** All members that the queue may have for a request: a lost reply or a check under way leaves open which. */
  membersOf(request: AcquireRequest): string[] {
    return Array.from(this.subscription.replyAddresses(), (address) => formatMember(request, address));
  }

  /**
   * Grants a lock that a request of this process handed off to its waiters: their leases are counted from its sending, on the
   * clock of each. `agoMs` returns the time since the sending; `undefined`: that is unknown, as with a message. A lock for an
   * unknown id is released.
   */
  handOff(handOffs: readonly RedisHandOff[], lock: string, agoMs: (() => number) | undefined): void {
    for (const { id, token } of handOffs) {
      const enqueue = this.#enqueues.get(id);
      const waiter = this.#waiters.get(id);
      if (enqueue !== undefined) enqueue.messageToken = token;
      else if (waiter === undefined && !this.#holdUntil.has(id)) this.#abandonUnknown(id, lock);
      if (waiter === undefined) continue;
      if (agoMs === undefined) {
        this.#onTurn(waiter, token);
        continue;
      }
      // The clock is read before the age: time that passes between the two makes the lease shorter, not longer.
      const now = waiter.call.now();
      this.grant(waiter, token, now - agoMs(), waiter.request.ttlMs);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#sweepTimer);
    clearImmediate(this.#moveTimer);
    this.#waiters.close();
    this.#enqueues.clear();
    this.#holdUntil.clear();
  }

  #onMessage(text: string): void {
    const message = decodeMessage(text);
    if (message === undefined || this.#closed) return;
    this.handOff([message], message.lock, undefined);
  }

  isWaiting(waiter: RedisWaiter): boolean {
    return waiter.grant === undefined && this.#waiters.get(waiter.request.acquisitionId) === waiter;
  }

  #onTurn(waiter: RedisWaiter, token: number): void {
    if (token <= waiter.lastToken) return;
    // A message alone proves nothing about time: the lease is counted from the last request that found the acquisition waiting.
    this.grant(waiter, token, waiter.confirmedAt, waiter.request.ttlMs);
  }

  grant(waiter: RedisWaiter, token: number, countedFrom: number, validForMs: number): void {
    if (!this.isWaiting(waiter)) return;
    const { request, keys } = waiter;
    if (waiter.isMoving || waiter.replyAddress !== this.subscription.replyAddressOf(keys.slot))
      this.#leaveQueue(waiter);
    const grant: RedisGrant = {
      request,
      fencingToken: BigInt(token),
      countedFrom,
      validForMs,
      keys,
      nobodyWaited: false,
      mayBeShared: false,
    };
    this.#hold(request.acquisitionId, validForMs);
    this.#waiters.grant(waiter, grant);
  }

  /**
   * Takes a waiter that holds now out of the queue: an attempt that was repeated with one reply address, while a check moved
   * the waiter to another one, has put it there twice.
   */
  #leaveQueue({ request, keys: { queue } }: RedisWaiter): void {
    // The entry ends with its process.
    this.#port.send(queue, ['ZREM', queue, ...this.membersOf(request)]).catch(() => undefined);
  }

  /** Releases a lock that was granted to an id that nobody here knows: it would be held until its ttl. */
  #abandonUnknown(id: string, lock: string): void {
    const { token, queue } = keysOfLock(lock);
    runScript(
      this.#port,
      scripts.abandon,
      [lock, token, queue],
      [id, this.subscription.replyAddress, ''],
      mayAlwaysRepeat,
    )
      .then(decodeRelease)
      .then(
        // No waiter's clock shows the sending time of this request.
        ({ handOffs }) => this.handOff(handOffs, lock, undefined),
        () => undefined, // The hold ends by itself after its ttl.
      );
  }

  #hold(acquisitionId: string, validForMs: number): void {
    if (this.#closed) return;
    this.#holdUntil.set(acquisitionId, performance.now() + validForMs);
    this.#sweepTimer ??= setInterval(() => this.#sweep(), this.#options.maxPollMs).unref();
  }

  /** Forgets the holds that have ended without a release. */
  #sweep(): void {
    const now = performance.now();
    for (const [id, until] of this.#holdUntil) if (until < now) this.#holdUntil.delete(id);
    if (this.#holdUntil.size > 0) return;
    clearInterval(this.#sweepTimer);
    this.#sweepTimer = undefined;
  }

  /** Moves waiters to the channel that they need now; those of one iteration of the event loop together. */
  moveSoon(): void {
    this.#moveTimer ??= setImmediate(() => {
      this.#moveTimer = undefined;
      const waiters = this.#waiters.all();
      for (const { keys } of waiters) this.subscription.open(keys.slot);
      const moving = waiters.filter(
        ({ replyAddress, keys }) => replyAddress !== this.subscription.replyAddressOf(keys.slot),
      );
      this.heartbeat.checkNow(moving);
    });
  }

  #beat(): void {
    const waiters = this.#waiters.all();
    for (const { keys } of waiters) this.subscription.open(keys.slot);
    this.heartbeat.beat(waiters);
  }

  checked(resource: string, refreshedAt: number | undefined, endsInMs: number): void {
    // The last waiter of the resource may have left meanwhile: nothing is kept of it then.
    if (refreshedAt !== undefined && this.#waiters.countOf(resource) > 0)
      this.#queueRefreshedAt.set(resource, refreshedAt);
    this.#mayEnd(resource, endsInMs);
  }

  /** Records that a hold of the resource can end by itself in `inMs` milliseconds; negative: none does. */
  #mayEnd(resource: string, inMs: number): void {
    // Holds that end later are seen by the regular check.
    if (!this.#port.isPolled && inMs >= 0 && inMs < this.heartbeat.intervalMs)
      this.#holdEnds.expect(resource, inMs);
  }

  /** Checks resources whose holds may have ended: one waiter of each, the first of this process. */
  #checkEnds(resources: ReadonlySet<string>): void {
    const firsts: RedisWaiter[] = [];
    for (const resource of resources) {
      let first: RedisWaiter | undefined;
      for (const waiter of this.#waiters.of(resource)) {
        if (waiter.position < (first?.position ?? Infinity) && waiter.grant === undefined) first = waiter;
      }
      if (first !== undefined) firsts.push(first);
    }
    this.heartbeat.checkNow(firsts);
  }
}
