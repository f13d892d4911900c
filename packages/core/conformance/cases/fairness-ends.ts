import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import type { Lease } from '../../src/lease.ts';
import { fifo, needs } from '../needs.ts';
import { type LongestPause, watchPauses } from '../pauses.ts';
import { EXCLUSIVE, grab, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { startWaiting, watch } from '../waiter.ts';

type Way = 'an expiry' | 'an abandon' | 'a forced release';

const HELD_MS = 120_000;
const WAITERS = 3;

export const fairnessEndCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/a-try-does-not-overtake-at-an-end',
    clause: '§7.4',
    title:
      'when a hold ends by its ttl, by an abandon or by force, the waiters enter in their order, and every try is refused until the last of them has left',
    ...needs(fifo),
    async run(context) {
      const { tenure, features } = (await context.backend()).capabilities;
      const ways: Way[] = ['an abandon'];
      if (tenure === 'lease') ways.push('an expiry');
      if (features.includes('force-release')) ways.push('a forced release');
      const longestPause = watchPauses(context);
      await Promise.all(
        ways.map(async (way) => {
          while (!(await new Round(context, way, longestPause).isJudged()));
        }),
      );
    },
  },
];

/** A hold, three waiters for its end, and one client that tries all the time. */
class Round {
  readonly #context: CaseContext;
  readonly #way: Way;
  readonly #name: string;
  readonly #longestPause: LongestPause;
  readonly #entered: number[] = [];
  #inside: Lease | undefined;
  /** The time at which the hold expires. */
  #end = Number.POSITIVE_INFINITY;
  #refusals = 0;
  /** How long before the end of the hold the last refused try was sent. */
  #lastRefusedBeforeMs = Number.POSITIVE_INFINITY;
  #overtaken = false;
  #triesAreOver = false;
  #longestAnswerMs = 0;

  constructor(context: CaseContext, way: Way, longestPause: LongestPause) {
    this.#longestPause = longestPause;
    this.#context = context;
    this.#way = way;
    this.#name = context.name(way);
  }

  /**
   * Plays the round. Gives false where this process or the store stood still: then a waiter may have been taken for dead
   * and passed over, or no try came when the hold ended.
   * @throws the failure of the round
   */
  async isJudged(): Promise<boolean> {
    const { livingTtlMs, timing } = this.#context;
    const startedAt = performance.now();
    const [holder, third] = [await this.#context.backend(), await this.#context.backend()];
    const held = await grab(holder, this.#name, this.#way === 'an expiry' ? livingTtlMs : HELD_MS);
    if (this.#way === 'an expiry') this.#end = held.countedFrom + (held.validForMs ?? livingTtlMs);
    const isStill = (): boolean =>
      Math.max(this.#longestPause(startedAt), this.#longestAnswerMs) > timing.slackMs / 2 ||
      (this.#way === 'an expiry' && this.#lastRefusedBeforeMs > timing.slackMs / 2);
    try {
      await this.#play(holder, third, held);
      assert.ok(!this.#overtaken, `at ${this.#way} a try overtook the waiters`);
      assert.deepEqual(this.#entered, [0, 1, 2], `the order in which the waiters entered after ${this.#way}`);
      return !(this.#way === 'an expiry' && this.#lastRefusedBeforeMs > timing.slackMs / 2);
    } catch (error) {
      if (error instanceof SafetyViolation || !isStill()) throw error;
      return false;
    }
  }

  async #play(holder: LockBackend, third: LockBackend, held: Grant): Promise<void> {
    const turns: Promise<void>[] = [];
    for (let position = 0; position < WAITERS; position += 1) {
      const { lease } = await startWaiting(this.#context, this.#name, { waitMs: 60_000 });
      const turn = this.#turn(position, lease);
      watch(turn);
      turns.push(turn);
    }
    const over = Promise.all(turns);
    const trying = this.#tries(third, watch(over));
    watch(trying);
    try {
      await this.#context.until('tries are refused', () => this.#refusals >= 2 || this.#overtaken);
      // One try is on its way while the hold ends.
      await Promise.all([this.#endHold(holder, held), this.#try(third)]);
      await trying;
    } finally {
      this.#triesAreOver = true;
    }
    await over;
  }

  /** Holds the lock until a try was refused meanwhile; the last waiter holds it until the tries are over. */
  async #turn(position: number, acquiring: Promise<Lease>): Promise<void> {
    const lease = await acquiring;
    this.#entered.push(position);
    this.#inside = lease;
    const refusedBefore = this.#refusals;
    const isLast = this.#entered.length === WAITERS;
    while (!this.#triesAreOver && (isLast || this.#refusals === refusedBefore)) await this.#context.sleep(1);
    this.#inside = undefined;
    await lease.release();
  }

  /** Tries until the last waiter holds: only after it may a try be granted. */
  async #tries(third: LockBackend, over: { readonly settled: boolean }): Promise<void> {
    do {
      await this.#try(third);
      await this.#context.sleep(this.#pauseMs());
    } while (this.#entered.length < WAITERS && !this.#overtaken && !over.settled);
  }

  /** Such that a try is sent within half the slack before an expiry, also where the store answers late. */
  #pauseMs(): number {
    const { slackMs } = this.#context.timing;
    const untilNearMs = this.#end - performance.now() - slackMs / 2;
    if (untilNearMs <= 0 || untilNearMs === Number.POSITIVE_INFINITY) return 2;
    const tryMs = 2 * this.#longestAnswerMs;
    return untilNearMs > tryMs + slackMs / 20 ? slackMs / 20 : untilNearMs + slackMs / 100;
  }

  async #try(third: LockBackend): Promise<void> {
    const request = requestOf(this.#name, EXCLUSIVE, HELD_MS);
    const inside = this.#inside;
    const sentAt = performance.now();
    const attempt = await third.attempt(request, false, openCall);
    this.#longestAnswerMs = Math.max(this.#longestAnswerMs, performance.now() - sentAt);
    const isBeside = inside !== undefined && inside === this.#inside && inside.validForMs > 0;
    await third.abandon(request, openCall);
    if (attempt.status === 'granted') {
      this.#overtaken = true;
      if (isBeside) throw new SafetyViolation('A try was granted beside a waiter that holds.');
      return;
    }
    this.#refusals += 1;
    if (sentAt < this.#end) this.#lastRefusedBeforeMs = this.#end - sentAt;
  }

  async #endHold(holder: LockBackend, held: Grant): Promise<void> {
    switch (this.#way) {
      case 'an expiry':
        return;
      case 'an abandon':
        return holder.abandon(held.request, openCall);
      case 'a forced release':
        await holder.forceRelease?.(this.#name, undefined, openCall);
        return;
      default:
        return this.#way satisfies never;
    }
  }
}
