import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import type { Lease } from '../../lease.ts';
import { fifo, needs } from '../needs.ts';
import { type LongestPause, watchPauses } from '../pauses.ts';
import { EXCLUSIVE, grab, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, watch } from '../waiter.ts';

type Way = 'an expiry' | 'an abandon' | 'a forced release';

const HELD_MS = 120_000;
const WAITERS = 3;

export const fairnessEndCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/a-try-does-not-overtake-at-an-end',
    clause: '§7.4',
    title:
      'a hold ends that nobody released, by its time, by an abandon or by force: those who wait enter in their order, and all tries are refused until the last of them has left',
    ...needs(fifo),
    async run(stage) {
      const { tenure, features } = (await stage.backend()).capabilities;
      const ways: Way[] = ['an abandon'];
      if (tenure === 'lease') ways.push('an expiry');
      if (features.includes('force-release')) ways.push('a forced release');
      const longestPause = watchPauses(stage);
      await Promise.all(
        ways.map(async (way) => {
          while (!(await new Round(stage, way, longestPause).isJudged()));
        }),
      );
    },
  },
];

/** A hold, three who wait for its end, and one who tries all the time. */
class Round {
  readonly #stage: Stage;
  readonly #way: Way;
  readonly #name: string;
  readonly #longestPause: LongestPause;
  readonly #entered: number[] = [];
  #inside: Lease | undefined;
  /** When the hold ends by itself. */
  #end = Number.POSITIVE_INFINITY;
  #refusals = 0;
  /** How long before the end the last try was sent that was refused. */
  #lastRefusedBeforeMs = Number.POSITIVE_INFINITY;
  #overtaken = false;
  #triesAreOver = false;
  #longestAnswerMs = 0;

  constructor(stage: Stage, way: Way, longestPause: LongestPause) {
    this.#longestPause = longestPause;
    this.#stage = stage;
    this.#way = way;
    this.#name = stage.name(way);
  }

  /**
   * False: this process or the store stood still. Whoever waits may have been taken for dead, and passed over, or nobody
   * tried when the hold ended.
   * @throws what is wrong
   */
  async isJudged(): Promise<boolean> {
    const { livingTtlMs, timing } = this.#stage;
    const startedAt = performance.now();
    const [holder, third] = [await this.#stage.backend(), await this.#stage.backend()];
    const held = await grab(holder, this.#name, this.#way === 'an expiry' ? livingTtlMs : HELD_MS);
    if (this.#way === 'an expiry') this.#end = held.countedFrom + (held.validForMs ?? livingTtlMs);
    const isStill = (): boolean =>
      Math.max(this.#longestPause(startedAt), this.#longestAnswerMs) > timing.slackMs / 2 ||
      (this.#way === 'an expiry' && this.#lastRefusedBeforeMs > timing.slackMs / 2);
    try {
      await this.#play(holder, third, held);
      assert.ok(!this.#overtaken, `at ${this.#way} a try overtook those who wait`);
      assert.deepEqual(this.#entered, [0, 1, 2], `in the order of waiting, after ${this.#way}`);
      return !(this.#way === 'an expiry' && this.#lastRefusedBeforeMs > timing.slackMs / 2);
    } catch (error) {
      if (error instanceof SafetyViolation || !isStill()) throw error;
      return false;
    }
  }

  async #play(holder: LockBackend, third: LockBackend, held: Grant): Promise<void> {
    const turns: Promise<void>[] = [];
    for (let place = 0; place < WAITERS; place += 1) {
      const { lease } = await startWaiting(this.#stage, this.#name, { waitMs: 60_000 });
      const turn = this.#turn(place, lease);
      watch(turn);
      turns.push(turn);
    }
    const over = Promise.all(turns);
    const trying = this.#tries(third, watch(over));
    watch(trying);
    try {
      await this.#stage.until('tries are refused', () => this.#refusals >= 2 || this.#overtaken);
      // One try is on its way together with the end.
      await Promise.all([this.#endHold(holder, held), this.#try(third)]);
      await trying;
    } finally {
      this.#triesAreOver = true;
    }
    await over;
  }

  /** Stays until a try was refused meanwhile; the last one until there are no more of them. */
  async #turn(place: number, acquiring: Promise<Lease>): Promise<void> {
    const lease = await acquiring;
    this.#entered.push(place);
    this.#inside = lease;
    const refusedBefore = this.#refusals;
    const isLast = this.#entered.length === WAITERS;
    while (!this.#triesAreOver && (isLast || this.#refusals === refusedBefore)) await this.#stage.sleep(1);
    this.#inside = undefined;
    await lease.release();
  }

  /** Until the last one who waited is inside: only after it would a try be granted. */
  async #tries(third: LockBackend, over: { readonly settled: boolean }): Promise<void> {
    const { slackMs } = this.#stage.timing;
    do {
      await this.#try(third);
      const endIsFar = this.#end < Number.POSITIVE_INFINITY && this.#end - performance.now() > slackMs / 2;
      await this.#stage.sleep(endIsFar ? slackMs / 20 : 2);
    } while (this.#entered.length < WAITERS && !this.#overtaken && !over.settled);
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
      if (isBeside) throw new SafetyViolation('A try was granted beside one who had waited.');
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
