import { scripts } from './generated/scripts.ts';
import type { CheckedRedisOptions } from './options.ts';
import type { RedisPort } from './port.ts';
import { decodeCheck, type RedisCheckReply, type RedisHandOff } from './replies.ts';
import { listIn } from './reply-shape.ts';
import { isRetryableRedisError, isUnknownScript } from './retryable.ts';
import { runScript } from './run-script.ts';
import type { Subscription } from './subscription.ts';
import { formatMember } from './value.ts';
import type { RedisWaiter } from './waiter.ts';

const WAITERS_PER_COMMAND = 200;
/** The most commands of one check. A command serves one slot of a cluster: waiters of more slots are checked in turns. */
const COMMANDS_PER_BEAT = 64;

/** A process that sends nothing counts as alive for as long as so many checks. */
export const CHECKS_ALIVE = 3;

interface Batch {
  readonly replyAddress: string;
  readonly resources: RedisWaiter[][];
  size: number;
}

/** What a check asks before it is repeated, and the events that its reply tells. */
export interface CheckEvents {
  /** Whether a waiter has neither been handed the lock nor left. */
  isWaiting(waiter: RedisWaiter): boolean;
  /** Called for a waiter that holds the lock, for `validForMs` from `countedFrom` on core's clock. */
  grant(waiter: RedisWaiter, token: number, countedFrom: number, validForMs: number): void;
  /** Called when the check handed the lock to a waiter of this process that it did not name. */
  handOff(handOffs: readonly RedisHandOff[], lock: string, agoMs: () => number): void;
  /**
   * Called after each check of a resource.
   *
   * @param refreshedAt - when the check that moved the end of the queue was sent, on core's clock; `undefined`: nobody waits
   * @param endsInMs - the time in which a hold of the resource can end by itself, in milliseconds; negative: none does
   */
  checked(resource: string, refreshedAt: number | undefined, endsInMs: number): void;
  /** Called when waiters need another channel than the one that the check moved them to. */
  moveSoon(): void;
}

/** Keeps the waiters of a process alive in Redis, and checks how they stand: see `check.lua`. */
export class RedisWaiterHeartbeat {
  /** The time from one check of a waiter to the next. */
  intervalMs: number;
  readonly #port: RedisPort;
  readonly #options: CheckedRedisOptions;
  readonly #subscription: Subscription;
  readonly #events: CheckEvents;
  #busySince: number | undefined;
  #turns = 1;
  #turn = 0;

  constructor(
    port: RedisPort,
    options: CheckedRedisOptions,
    subscription: Subscription,
    events: CheckEvents,
  ) {
    this.#port = port;
    this.#options = options;
    this.intervalMs = options.maxPollMs;
    this.#subscription = subscription;
    this.#events = events;
  }

  /** The regular check, of all waiters or of those whose turn it is. */
  beat(waiters: readonly RedisWaiter[]): void {
    const now = performance.now();
    // A check that never ends (an offline queue) must not prevent all later ones.
    if (this.#busySince !== undefined && now - this.#busySince < 3 * this.#options.maxPollMs) return;
    this.#busySince = now;
    void this.#checkAll(this.#dueBatches(this.#batchesOf(waiters))).then(() => {
      if (this.#busySince === now) this.#busySince = undefined;
    });
  }

  /** Checks waiters at once, and all of them. */
  checkNow(waiters: readonly RedisWaiter[]): void {
    void this.#checkAll(this.#batchesOf(waiters));
  }

  #checkAll(batches: readonly Batch[]): Promise<unknown> {
    return Promise.allSettled(batches.map((batch) => this.#check(batch)));
  }

  #batchesOf(waiters: readonly RedisWaiter[]): Batch[] {
    const resources = new Map<string, RedisWaiter[]>();
    for (const waiter of waiters) {
      if (waiter.grant !== undefined || waiter.isMoving) continue;
      const key = waiter.replyAddress + waiter.keys.lock;
      const together = resources.get(key);
      if (together) together.push(waiter);
      else resources.set(key, [waiter]);
    }
    const open = new Map<string, Batch>();
    const batches: Batch[] = [];
    for (const together of resources.values()) {
      for (let at = 0; at < together.length; at += WAITERS_PER_COMMAND) {
        const part = together.slice(at, at + WAITERS_PER_COMMAND);
        const { replyAddress, keys } = part[0] as RedisWaiter;
        const group = this.#port.cluster ? `${keys.slot}${replyAddress}` : replyAddress;
        let batch = open.get(group);
        if (batch === undefined || batch.size + part.length > WAITERS_PER_COMMAND) {
          batch = { replyAddress, resources: [], size: 0 };
          batches.push(batch);
          open.set(group, batch);
        }
        batch.resources.push(part);
        batch.size += part.length;
      }
    }
    return batches;
  }

  #dueBatches(batches: Batch[]): Batch[] {
    const former = this.#turns;
    this.#turns = Math.max(1, Math.ceil(batches.length / COMMANDS_PER_BEAT));
    this.intervalMs = this.#options.maxPollMs * this.#turns;
    // Waiters checked so far count as alive for the former number of turns only: with more turns, all are checked once.
    if (this.#turns === 1 || this.#turns > former) return batches;
    this.#turn = (this.#turn + 1) % this.#turns;
    // The batches are chosen by slot, which does not change when other waiters come and go, so each has its turn.
    return batches.filter(
      ({ resources }) => (resources[0]?.[0]?.keys.slot ?? 0) % this.#turns === this.#turn,
    );
  }

  async #check(batch: Batch): Promise<void> {
    const keys: string[] = [];
    const waiters = batch.resources.flat();
    // The check also moves waiters to the channel that they need now. In a cluster a batch has one slot.
    const { slot } = (waiters[0] as RedisWaiter).keys;
    const replyAddress = this.#subscription.replyAddressOf(slot);
    const former = batch.replyAddress === replyAddress ? '' : batch.replyAddress;
    const args: string[] = [String(CHECKS_ALIVE * this.intervalMs), replyAddress, former];
    for (const together of batch.resources) {
      const { lock, token, queue } = (together[0] as RedisWaiter).keys;
      keys.push(lock, token, queue);
      args.push(String(together.length));
      for (const { request, position } of together) {
        const limit = request.mode.kind === 'permit' ? String(request.mode.limit) : '';
        args.push(formatMember(request, replyAddress), String(position), limit);
      }
    }
    if (former !== '') for (const waiter of waiters) waiter.isMoving = true;
    const sentAt = new Map(waiters.map((waiter) => [waiter, waiter.call.now()]));
    // A repetition comes after the release or the abandon of a waiter that it names, and would let it wait again.
    const mayRepeat = (): boolean => waiters.every((waiter) => this.#events.isWaiting(waiter));
    let replies: readonly (RedisCheckReply | undefined)[];
    try {
      const reply = await runScript(this.#port, scripts.check, keys, args, mayRepeat);
      replies = listIn(reply, batch.resources.length).map(decodeCheck);
    } catch (error) {
      // The waits end: the next attempt of each waiter shows the error.
      if (!isRetryableRedisError(error) || isUnknownScript(error)) for (const { wait } of waiters) wait.end();
      for (const waiter of waiters) waiter.checkError = error;
      return;
    } finally {
      for (const waiter of waiters) waiter.isMoving = false;
    }
    for (const waiter of waiters) Object.assign(waiter, { replyAddress, checkError: undefined });
    // A channel was opened or lost meanwhile, or the client learned from the reply that the slot has moved.
    if (replyAddress !== this.#subscription.replyAddressOf(slot)) this.#events.moveSoon();
    for (const [at, together] of batch.resources.entries()) {
      const reply = replies[at];
      if (reply === undefined) for (const { wait } of together) wait.end();
      else this.#onReply(together, reply, sentAt);
    }
  }

  #onReply(
    waiters: readonly RedisWaiter[],
    { endsInMs, held, lastToken }: RedisCheckReply,
    sentAt: ReadonlyMap<RedisWaiter, number>,
  ): void {
    const others = new Map(held);
    let refreshedAt: number | undefined;
    for (const waiter of waiters) {
      const { acquisitionId } = waiter.request;
      const hold = held.get(acquisitionId);
      const from = sentAt.get(waiter) as number;
      if (hold !== undefined) this.#events.grant(waiter, hold.token, from, hold.leftMs);
      else {
        waiter.confirmedAt = Math.max(waiter.confirmedAt, from);
        waiter.lastToken = Math.max(waiter.lastToken, lastToken);
        refreshedAt ??= from;
      }
      others.delete(acquisitionId);
    }
    const [first] = waiters as [RedisWaiter];
    const { call, keys, request } = first;
    const from = sentAt.get(first) as number;
    for (const [id, { token }] of others) {
      this.#events.handOff([{ id, token }], keys.lock, () => call.now() - from);
    }
    this.#events.checked(request.resource, refreshedAt, endsInMs);
  }
}
