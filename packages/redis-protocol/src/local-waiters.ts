import { type AcquireRequest, type Call, TurnWait } from '@locks/core/backend';
import { scripts } from './generated/scripts.ts';
import type { RedisGrant } from './grant.ts';
import { HoldEndTimers } from './hold-end-timers.ts';
import { keysOfLock, type ResourceKeys } from './keys.ts';
import type { CheckedRedisOptions } from './options.ts';
import type { RedisPort } from './port.ts';
import { decodeMessage, decodeRelease, type RedisAttemptReply, type RedisHandOff } from './replies.ts';
import { runScript } from './run-script.ts';
import { Subscription } from './subscription.ts';
import { formatMember } from './value.ts';
import { RedisWaiterHeartbeat } from './waiter-heartbeat.ts';
import type { RedisWaiter } from './waiter.ts';

/** An enqueue that is in flight or that failed: it may have run, and is repeated or abandoned. */
interface Enqueuing {
  readonly state: 'enqueuing';
  /** The reply address of the enqueue. A repetition sends the same one, since it is a part of the member of the queue. */
  readonly replyAddress: string;
  isRepeated: boolean;
  /** The token of a message that arrived before the reply of the enqueue, or instead of it. */
  messageToken: number | undefined;
}

/** The parameters of an enqueue. */
export interface EnqueueParams {
  readonly replyAddress: string;
  /**
   * The time when a waiter of this process last moved the end of the queue; `undefined`: none did within the interval of the
   * checks.
   */
  readonly queueTtlRefreshedAt: number | undefined;
}

/** An acquisition that holds after it waited: messages of its hand-off that arrive late are ignored. */
interface Holding {
  readonly state: 'holding';
  /** The earliest end of the hold, by `performance.now()`. */
  readonly until: number;
}

/**
 * The waiters of this process, and how grants find them. Each acquisition that asks to wait is one entry:
 *
 *     register → enqueuing → onQueued → waiting → hand-off → (granted, until awaitTurn) → holding
 *                    └──── granted by the reply itself: no entry, or holding where messages may be late
 *
 * `forget` removes an entry in any state.
 */
export class RedisLocalWaiters {
  readonly subscription: Subscription;
  readonly heartbeat: RedisWaiterHeartbeat;
  readonly #port: RedisPort;
  readonly #options: CheckedRedisOptions;
  readonly #entries = new Map<string, Enqueuing | RedisWaiter | Holding>();
  /** The last waiter of each lock that joined its queue. */
  readonly #latest = new Map<string, RedisWaiter>();
  readonly #holdEnds = new HoldEndTimers((locks) => this.#checkEnds(locks));
  #timer: NodeJS.Timeout | undefined;
  #moveTimer: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(port: RedisPort, options: CheckedRedisOptions) {
    this.#port = port;
    this.#options = options;
    this.subscription = new Subscription(port, options.prefix, {
      message: (text) => this.#onMessage(text),
      // Messages from before are lost, and earlier waiters have another channel in the queue, or none yet.
      listening: (replyAddress) =>
        this.heartbeat.checkNow(
          this.#waiters().filter(({ keys }) => this.subscription.replyAddressOf(keys.slot) === replyAddress),
        ),
      changed: () => this.#moveSoon(),
    });
    this.heartbeat = new RedisWaiterHeartbeat(port, options, this.subscription, {
      holds: (...hold) => this.#grant(...hold),
      handedOff: (handOff, lock, agoMs) => this.handOff([handOff], lock, agoMs),
      mayEnd: (lock, inMs) => this.#mayEnd(lock, inMs),
      outdated: () => this.#moveSoon(),
    });
  }

  /**
   * Called before an enqueue is sent; {@link onQueued}, {@link onGranted} or {@link onConflict} follows with its reply.
   */
  register(id: string, { lock, slot }: ResourceKeys, sentAt: number): EnqueueParams {
    const entry = this.#entries.get(id);
    if (entry !== undefined && entry.state !== 'holding') {
      entry.isRepeated = true;
      return { replyAddress: entry.replyAddress, queueTtlRefreshedAt: undefined };
    }
    const replyAddress = this.subscription.replyAddressOf(slot);
    this.#entries.set(id, { state: 'enqueuing', replyAddress, isRepeated: false, messageToken: undefined });
    const latest = this.#latest.get(lock);
    const isRefreshed =
      latest?.state === 'waiting' && sentAt - latest.queueTtlRefreshedAt < this.heartbeat.intervalMs;
    return { replyAddress, queueTtlRefreshedAt: isRefreshed ? latest.queueTtlRefreshedAt : undefined };
  }

  /** Records that the enqueue was answered with "waiting". */
  onQueued(
    request: AcquireRequest,
    keys: ResourceKeys,
    call: Call,
    sentAt: number,
    { replyAddress, queueTtlRefreshedAt = sentAt }: EnqueueParams,
    { position, lastToken, endsInMs }: RedisAttemptReply & { readonly status: 'waiting' },
  ): void {
    const id = request.acquisitionId;
    const entry = this.#entries.get(id);
    // The enqueue was abandoned meanwhile.
    if (entry === undefined) return;
    const known = entry.state === 'waiting' || entry.state === 'granted' ? entry : undefined;
    // A hand-off that came after this answer was told before it.
    if (known?.grant !== undefined && known.grant.fencingToken > lastToken) return this.#leaveQueue(known);
    const lasting = known ?? {
      request,
      keys,
      isMoving: false,
      turn: new TurnWait<RedisGrant>(),
    };
    // The waiter stays the same object, since a check of it may be in flight.
    const waiter: RedisWaiter = Object.assign(lasting, {
      state: 'waiting' as const,
      call,
      position,
      replyAddress,
      isRepeated: false,
      confirmedAt: sentAt,
      queueTtlRefreshedAt,
      lastToken,
      grant: undefined,
    });
    this.#entries.set(id, waiter);
    this.#latest.set(keys.lock, waiter);
    if (entry.state === 'enqueuing' && entry.messageToken !== undefined) {
      this.#onTurn(waiter, entry.messageToken);
    }
    this.subscription.open(keys.slot);
    // The channel was opened while the enqueue was under way, or the slot has moved.
    if (replyAddress !== this.subscription.replyAddressOf(keys.slot)) this.#moveSoon();
    this.#mayEnd(keys.lock, endsInMs);
    this.#timer ??= setInterval(() => this.#beat(), this.#options.checkIntervalMs).unref();
  }

  /** Records that the attempt was answered with a grant, perhaps an earlier one, whose message may arrive late. */
  onGranted(id: string, validForMs: number, mayBeOlder: boolean): void {
    const entry = this.#entries.get(id);
    const isRepeated = entry !== undefined && entry.state !== 'holding' && entry.isRepeated;
    if (entry?.state === 'waiting') entry.state = 'ended';
    if (mayBeOlder || isRepeated) this.#hold(id, validForMs);
    else this.#entries.delete(id);
  }

  /** Records that the enqueue was answered with a conflict. A waiter stays one until it is abandoned. */
  onConflict(id: string): void {
    if (this.#entries.get(id)?.state === 'enqueuing') this.#entries.delete(id);
  }

  /** Records that a lease was renewed. */
  extend(id: string, validForMs: number): void {
    if (this.#entries.size > 0 && this.#entries.get(id)?.state === 'holding') this.#hold(id, validForMs);
  }

  /** Forgets an id: for this process it neither waits nor holds any more. */
  forget(id: string): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    if (entry.state !== 'waiting') return;
    entry.state = 'ended';
    entry.turn.end();
  }

  awaitTurn({ acquisitionId }: AcquireRequest, call: Call): Promise<RedisGrant | undefined> {
    const entry = this.#entries.get(acquisitionId);
    if (entry?.state === 'waiting') return entry.turn.begin(call);
    if (entry?.state !== 'granted') return Promise.resolve(undefined);
    const { grant } = entry;
    this.#hold(acquisitionId, grant?.validForMs ?? 0);
    return Promise.resolve(grant);
  }

  /** Returns the error of the last check of a waiter; `undefined` if it did not fail. */
  checkErrorOf({ acquisitionId }: AcquireRequest): unknown {
    const entry = this.#entries.get(acquisitionId);
    return entry?.state === 'waiting' ? entry.checkError : undefined;
  }

  /** All members that the queue may have for a request: a lost reply or a check under way leaves open which. */
  membersOf(request: AcquireRequest): string[] {
    return Array.from(this.subscription.replyAddresses(), (address) => formatMember(request, address));
  }

  /**
   * Grants a lock that a request of this process handed off to its waiters: their leases are counted from its sending, on the
   * clock of each. `agoMs` returns the time since the sending; without it that is unknown, as with a message.
   */
  handOff(handOffs: readonly RedisHandOff[], lock: string, agoMs?: () => number): void {
    for (const { id, token } of handOffs) {
      const waiter = this.#waiterFor(id, token, lock);
      if (waiter === undefined) continue;
      if (agoMs === undefined) {
        this.#onTurn(waiter, token);
        continue;
      }
      // The clock is read before the age: time that passes between the two makes the lease shorter, not longer.
      const now = waiter.call.now();
      this.#grant(waiter, token, now - agoMs(), waiter.request.ttlMs);
    }
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    for (const waiter of this.#waiters()) waiter.turn.end();
    this.#entries.clear();
    this.#latest.clear();
  }

  #waiters(): RedisWaiter[] {
    return [...this.#entries.values()].flatMap((entry) => (entry.state === 'waiting' ? [entry] : []));
  }

  #onMessage(text: string): void {
    const message = decodeMessage(text);
    if (message === undefined || this.#closed) return;
    this.handOff([message], message.lock);
  }

  /** Finds the waiter that was handed a lock; a lock for an unknown id is released. */
  #waiterFor(id: string, token: number, lock: string): RedisWaiter | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) this.#abandonUnknown(id, lock);
    else if (entry.state === 'waiting') return entry;
    else if (entry.state === 'enqueuing') entry.messageToken = token;
    return undefined;
  }

  #onTurn(waiter: RedisWaiter, token: number): void {
    if (token <= waiter.lastToken) return;
    // A message alone proves nothing about time: the lease is counted from the last request that found the acquisition waiting.
    this.#grant(waiter, token, waiter.confirmedAt, waiter.request.ttlMs);
  }

  #grant(waiter: RedisWaiter, token: number, countedFrom: number, validForMs: number): void {
    if (waiter.state !== 'waiting') return;
    const { request, keys, turn } = waiter;
    if (waiter.isMoving || waiter.replyAddress !== this.subscription.replyAddressOf(keys.slot))
      this.#leaveQueue(waiter);
    const fencingToken = BigInt(token);
    const grant: RedisGrant = {
      request,
      fencingToken,
      countedFrom,
      validForMs,
      keys,
      nobodyWaited: false,
      mayBeShared: false,
    };
    waiter.state = 'granted';
    waiter.grant = grant;
    if (turn.end(grant)) this.#hold(request.acquisitionId, validForMs);
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
    ).then(
      // No waiter's clock shows the sending time of this request.
      (reply) => this.handOff(decodeRelease(reply).handOffs, lock),
      () => undefined, // The hold ends by itself after its ttl.
    );
  }

  #hold(id: string, validForMs: number): void {
    this.#entries.set(id, { state: 'holding', until: performance.now() + validForMs });
  }

  /** Moves waiters to the channel that they need now; those of one turn of the event loop together. */
  #moveSoon(): void {
    this.#moveTimer ??= setImmediate(() => {
      this.#moveTimer = undefined;
      const waiters = this.#waiters();
      for (const { keys } of waiters) this.subscription.open(keys.slot);
      const moving = waiters.filter(
        ({ replyAddress, keys }) => replyAddress !== this.subscription.replyAddressOf(keys.slot),
      );
      this.heartbeat.checkNow(moving);
    });
  }

  #beat(): void {
    const now = performance.now();
    for (const [id, entry] of this.#entries) {
      if (entry.state === 'holding' && entry.until < now) this.#entries.delete(id);
    }
    for (const [lock, { state }] of this.#latest) if (state !== 'waiting') this.#latest.delete(lock);
    if (this.#entries.size === 0) return this.#stop();
    const waiters = this.#waiters();
    if (waiters.length === 0) return;
    for (const { keys } of waiters) this.subscription.open(keys.slot);
    this.heartbeat.beat(waiters);
  }

  /** Records that a hold of the lock can end by itself in `inMs` milliseconds; negative: none does. */
  #mayEnd(lock: string, inMs: number): void {
    // Holds that end later are seen by the regular check.
    if (inMs >= 0 && inMs < this.heartbeat.intervalMs) this.#holdEnds.expect(lock, inMs);
  }

  /** Checks locks whose holds may have ended: one waiter of each, the first of this process. */
  #checkEnds(locks: ReadonlySet<string>): void {
    const firsts = new Map<string, RedisWaiter>();
    for (const waiter of this.#waiters()) {
      const { lock } = waiter.keys;
      if (!locks.has(lock)) continue;
      const other = firsts.get(lock);
      if (other === undefined || waiter.position < other.position) firsts.set(lock, waiter);
    }
    this.heartbeat.checkNow([...firsts.values()]);
  }

  #stop(): void {
    clearInterval(this.#timer);
    clearImmediate(this.#moveTimer);
    this.#timer = undefined;
    this.#moveTimer = undefined;
  }
}
