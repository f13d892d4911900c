import type { AcquireRequest, Call } from '@locks/core/backend';
import { CheckRound } from './check-round.ts';
import { claim } from './claim.ts';
import { scripts } from './generated/scripts.ts';
import { RedisGrant } from './grant.ts';
import { keysOfLock, type ResourceKeys } from './keys.ts';
import { weightOf } from './mode.ts';
import type { Settings } from './options.ts';
import type { RedisPort } from './port.ts';
import { runScript } from './run-script.ts';
import { Subscription } from './subscription.ts';
import { formatMember, parseMessage } from './value.ts';

const longestTimer = 2 ** 31 - 1;

/** One acquisition in the queue of a resource. */
export interface Waiter {
  readonly request: AcquireRequest;
  readonly keys: ResourceKeys;
  readonly call: Call;
  /** How Redis knows that this process is told of its grant. */
  notify: string;
  /** A check is under way that changes `notify`. */
  moving: boolean;
  /** Its place in the queue, as Redis keeps it: it goes back there whatever happens to the queue. */
  readonly place: number;
  /** On core's clock: before the last request that was answered with "still waiting". */
  confirmedAt: number;
  /** The token counter at that answer: a message with a token up to it speaks of an older hand-over that lapsed. */
  floor: number;
  /** Arrived while nobody was in `awaitTurn`. */
  grant: RedisGrant | undefined;
  /** Ends `awaitTurn`, while somebody is in it. */
  wake: ((grant: RedisGrant | undefined) => void) | undefined;
}

/** Everybody of this process who waits for a lock, and how a grant finds its waiter. */
export class WaitingRoom {
  readonly subscription: Subscription;
  readonly #port: RedisPort;
  readonly #settings: Settings;
  readonly #waiters = new Map<string, Waiter>();
  /** Granted after waiting, and until when at least: a message that comes late for one of these is no stray. */
  readonly #granted = new Map<string, number>();
  /**
   * Enqueues under way, and those that failed: they may have run, and are repeated or abandoned; with how they are told,
   * which is a part of their place. One that is abandoned is taken out: its answer must not admit it.
   */
  readonly #entering = new Map<string, string>();
  /** The tokens of messages that overtook the reply of their own enqueue, or came instead of it. */
  readonly #early = new Map<string, number>();
  readonly #round: CheckRound;
  readonly #claims: { readonly waiter: Waiter; readonly token: number }[] = [];
  #sweepAt = 256;
  #timer: NodeJS.Timeout | undefined;
  #move: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(port: RedisPort, settings: Settings) {
    this.#port = port;
    this.#settings = settings;
    this.#round = new CheckRound(port, settings, this);
    this.subscription = new Subscription(port, settings.prefix, {
      message: (text) => this.#hear(text),
      // What was published before is lost; waiters that entered before are not told there yet.
      listening: () => this.#round.run(this.#waiters.values()),
    });
  }

  /** Before an enqueue is sent. Followed by {@link answered} or {@link forget}. Gives whether it may be in the queue already. */
  enter(id: string): boolean {
    const known = this.#waiters.get(id)?.notify ?? this.#entering.get(id);
    this.#entering.set(id, known ?? this.subscription.notify);
    return known !== undefined;
  }

  /** The argument of an attempt that asks for a place in the queue. */
  queueArgument(id: string): string {
    const notify = this.#entering.get(id) ?? this.subscription.notify;
    return `${this.#round.aliveMs}|${this.#settings.claimMs}|${notify}`;
  }

  /** After the answer of an enqueue was read. A message of before says no more than it did, or speaks of what lapsed. */
  answered(id: string): void {
    this.#entering.delete(id);
    if (this.#early.size > 0) this.#early.delete(id);
  }

  /** The enqueue was answered with "waiting". */
  admit(
    request: AcquireRequest,
    keys: ResourceKeys,
    call: Call,
    sentAt: number,
    queue: string,
    reply: readonly unknown[],
  ): void {
    const notify = queue.slice(queue.indexOf('|', queue.indexOf('|') + 1) + 1);
    const id = request.acquisitionId;
    if (!this.#entering.has(id)) return;
    const known = this.#waiters.get(id);
    const waiter: Waiter = {
      request,
      keys,
      call,
      notify,
      moving: false,
      place: -Number(reply[0]),
      confirmedAt: sentAt,
      floor: Number(reply[1]),
      grant: undefined,
      wake: known?.wake,
    };
    this.#waiters.set(id, waiter);
    const early = this.#early.get(id);
    if (early !== undefined) this.#heard(waiter, early);
    if (!this.subscription.live) this.subscription.open();
    // The channel was opened while the enqueue was under way.
    else if (notify === this.subscription.silent) this.#moveSoon();
    this.#schedule();
  }

  /** What the queue holds for it. */
  memberOf(request: AcquireRequest, notify: string): string {
    const px = Math.min(request.ttlMs, this.#settings.claimMs);
    return formatMember(request.acquisitionId, px, weightOf(request.mode), notify, request.label ?? '');
  }

  /** All that the queue may hold for it: an enqueue without an answer, or a change under way, leaves open which. */
  membersOf(request: AcquireRequest): string[] {
    const { notify, silent } = this.subscription;
    const silently = this.memberOf(request, silent);
    return notify === silent ? [silently] : [this.memberOf(request, notify), silently];
  }

  /** The id holds now, by a reply to itself. */
  settle(id: string, validForMs: number): void {
    this.#remove(id);
    this.#noteGranted(id, validForMs);
  }

  extend(id: string, validForMs: number): void {
    if (this.#granted.size > 0 && this.#granted.has(id)) this.#noteGranted(id, validForMs);
  }

  /** The id neither waits nor holds any more, as far as this process is concerned. */
  forget(id: string): void {
    if (this.#granted.size > 0) this.#granted.delete(id);
    if (this.#entering.size > 0) this.#entering.delete(id);
    if (this.#waiters.size === 0 && this.#early.size === 0) return;
    this.#early.delete(id);
    const waiter = this.#waiters.get(id);
    this.#remove(id);
    waiter?.wake?.(undefined);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<RedisGrant | undefined> {
    const waiter = this.#waiters.get(request.acquisitionId);
    if (waiter === undefined) return Promise.resolve(undefined);
    if (waiter.grant !== undefined) {
      this.#remove(request.acquisitionId);
      return Promise.resolve(waiter.grant);
    }
    return new Promise((resolve) => {
      const { signal } = call;
      let timer: NodeJS.Timeout | undefined;
      const end = (grant: RedisGrant | undefined): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', hint);
        const now = this.#waiters.get(request.acquisitionId);
        if (now?.wake === end) now.wake = undefined;
        resolve(grant);
      };
      const hint = (): void => end(undefined);
      const left = call.deadline - call.now();
      if (left <= 0 || signal?.aborted) return resolve(undefined);
      if (left < longestTimer) timer = setTimeout(hint, Math.ceil(left));
      signal?.addEventListener('abort', hint, { once: true });
      waiter.wake = end;
    });
  }

  /**
   * A reply `[id, token, …]` to a request of this process, from `at` on, says that its waiters were handed the lock by
   * that very request: from its sending their leases are counted, on the clock of each. `agoMs` tells how long ago that was.
   */
  handLocally(reply: readonly unknown[], at: number, keys: ResourceKeys, agoMs: () => number): void {
    for (; at < reply.length; at += 2) {
      const id = String(reply[at]);
      const token = Number(reply[at + 1]);
      const waiter = this.#waiters.get(id);
      if (waiter === undefined) {
        this.#unknown(id, token, keys);
        continue;
      }
      const validForMs = Math.min(waiter.request.ttlMs, this.#settings.claimMs);
      // In this order: what passes between the two readings makes the lease shorter, not longer.
      const now = waiter.call.now();
      this.deliver(waiter, token, now - agoMs(), validForMs);
    }
  }

  /** Grants, or first makes sure of the lock where too little of the claim time is left to rely on. */
  deliver(waiter: Waiter, token: number, countedFrom: number, validForMs: number): void {
    const id = waiter.request.acquisitionId;
    if (this.#waiters.get(id) !== waiter || waiter.grant !== undefined) return;
    const left = countedFrom + validForMs - waiter.call.now();
    if (left >= Math.min(waiter.request.ttlMs, this.#settings.claimMs) / 2) {
      return this.#grant(waiter, token, countedFrom, validForMs);
    }
    this.#claims.push({ waiter, token });
    if (this.#claims.length === 1) setImmediate(() => void this.#claim());
  }

  stillWaiting(waiter: Waiter, sentAt: number, floor: number): void {
    waiter.confirmedAt = Math.max(waiter.confirmedAt, sentAt);
    waiter.floor = Math.max(waiter.floor, floor);
  }

  /** Makes the waiter's `awaitTurn` end without a grant: the attempt that follows shows what is wrong. */
  hint(waiter: Waiter): void {
    waiter.wake?.(undefined);
  }

  isWaiting(waiter: Waiter): boolean {
    return this.#waiters.get(waiter.request.acquisitionId) === waiter && waiter.grant === undefined;
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    for (const waiter of this.#waiters.values()) waiter.wake?.(undefined);
    this.#waiters.clear();
    this.#granted.clear();
    this.#early.clear();
  }

  #grant(waiter: Waiter, token: number, countedFrom: number, validForMs: number): void {
    const id = waiter.request.acquisitionId;
    const grant = new RedisGrant(waiter.request, waiter.keys, BigInt(token), countedFrom, validForMs);
    this.#noteGranted(id, validForMs);
    if (waiter.wake === undefined) {
      waiter.grant = grant;
      return;
    }
    this.#remove(id);
    waiter.wake(grant);
  }

  async #claim(): Promise<void> {
    const claims = this.#claims.splice(0);
    const outcomes = await claim(
      this.#port,
      claims.map(({ waiter }) => waiter),
    );
    const lost: Waiter[] = [];
    for (const [index, { waiter }] of claims.entries()) {
      const outcome = outcomes[index];
      if (!this.isWaiting(waiter)) continue;
      if (typeof outcome === 'object')
        this.#grant(waiter, outcome.token, outcome.sentAt, waiter.request.ttlMs);
      else if (outcome === 'lost') lost.push(waiter);
      // Unknown: the next check tells whether it holds.
    }
    if (lost.length > 0) this.#round.run(lost);
  }

  #hear(text: string): void {
    const message = parseMessage(text);
    if (message === undefined || this.#closed) return;
    const waiter = this.#waiters.get(message.id);
    if (waiter !== undefined) return this.#heard(waiter, message.token);
    this.#unknown(message.id, message.token, keysOfLock(message.lock));
  }

  #heard(waiter: Waiter, token: number): void {
    if (token <= waiter.floor) return;
    // A message alone proves nothing about time: counted from the last request known to have found it waiting.
    this.deliver(waiter, token, waiter.confirmedAt, Math.min(waiter.request.ttlMs, this.#settings.claimMs));
  }

  #unknown(id: string, token: number, keys: ResourceKeys): void {
    if (this.#granted.has(id)) return;
    if (this.#entering.has(id)) this.#early.set(id, token);
    else this.#giveBack(id, keys);
  }

  /** Frees what was granted to an id that nobody here knows, so that it does not last its claim time. */
  #giveBack(id: string, keys: ResourceKeys): void {
    runScript(
      this.#port,
      scripts.abandon,
      [keys.lock, keys.token, keys.queue],
      [id, this.subscription.notify, ''],
    ).then(
      (reply) => {
        // No waiter's clock tells how long ago this was sent: so those it names claim the lock first.
        if (Array.isArray(reply)) this.handLocally(reply, 0, keys, () => Number.POSITIVE_INFINITY);
      },
      () => undefined, // It lapses by itself after the claim time.
    );
  }

  #noteGranted(id: string, validForMs: number): void {
    const now = performance.now();
    this.#granted.set(id, now + validForMs);
    if (this.#granted.size < this.#sweepAt) return;
    for (const [old, until] of this.#granted) if (until < now) this.#granted.delete(old);
    this.#sweepAt = Math.max(256, 2 * this.#granted.size);
  }

  /** Has waiters told on the channel that entered before it was open; those of one turn of the event loop together. */
  #moveSoon(): void {
    this.#move ??= setImmediate(() => {
      this.#move = undefined;
      const { silent } = this.subscription;
      this.#round.run([...this.#waiters.values()].filter(({ notify }) => notify === silent));
    });
  }

  // Not unreferenced: a process that waits for a lock has something to do.
  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#waiters.size === 0) return;
      if (!this.subscription.live) this.subscription.open();
      this.#round.runInTurn(this.#waiters.values());
      this.#schedule();
    }, this.#settings.checkIntervalMs);
  }

  #remove(id: string): void {
    if (this.#waiters.delete(id) && this.#waiters.size === 0) this.#stop();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#move);
    this.#timer = undefined;
    this.#move = undefined;
  }
}
