import { isLockError, type Lease, type Lock } from '@locks/core';
import type { BackOff } from './back-off.ts';
import { type BaseLeadership, LeaseLeadership } from './leadership.ts';

/** The plan of a campaign: its work as a leader, and its reaction to failures. */
export interface CampaignPlan {
  readonly work: (leadership: BaseLeadership) => unknown;
  readonly backoff: BackOff;
  readonly whenWorkFails: 'end' | 'campaign';
  readonly onError: ((error: unknown) => void) | undefined;
}

/** One candidate of an election: it leads as often as its turn comes, until it is ended. */
export class Campaign {
  readonly #lock: Lock<Lease>;
  readonly #plan: CampaignPlan;
  readonly #controller = new AbortController();
  #epoch = 0;
  #ended: Promise<void> | undefined;

  constructor(lock: Lock<Lease>, plan: CampaignPlan) {
    this.#lock = lock;
    this.#plan = plan;
  }

  /** Aborts when the campaign ends. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves when the campaign is over, however it ended. */
  get ended(): Promise<void> {
    return this.#ended ?? Promise.resolve();
  }

  /** Runs the campaign. To be called once. */
  run(): Promise<void> {
    const running = this.#run().finally(() => this.end(undefined));
    this.#ended = running.catch(() => {});
    return running;
  }

  end(reason: unknown): void {
    this.#controller.abort(reason);
  }

  async #run(): Promise<void> {
    const { backoff } = this.#plan;
    while (!this.signal.aborted) {
      const lease = await this.#acquire();
      if (lease !== undefined) await this.#lead(lease);
      if (!this.signal.aborted) await backoff.pause(this.signal);
    }
  }

  /** Acquires the lease of the leader; gives `undefined` where the store failed, or the campaign ended. */
  async #acquire(): Promise<Lease | undefined> {
    try {
      return await this.#lock.acquire({ waitMs: Number.POSITIVE_INFINITY, signal: this.signal });
    } catch (error) {
      if (this.signal.aborted) return undefined;
      // Core itself repeats retryable calls. This error is one that core gave up on, for example a refused password.
      if (!isLockError(error, 'LOCK_BACKEND')) throw error;
      this.#failed(error);
      return undefined;
    }
  }

  async #lead(lease: Lease): Promise<void> {
    this.#epoch += 1;
    const leadership = new LeaseLeadership(lease, this.#epoch, this.signal);
    try {
      // The lease may have ended between the grant and this moment, as after a stall.
      if (leadership.signal.aborted) return;
      await this.#plan.work(leadership);
      this.#plan.backoff.succeeded();
    } catch (error) {
      if (leadership.isEndedBy(error)) this.#plan.backoff.succeeded();
      else if (this.#plan.whenWorkFails === 'campaign') this.#failed(error);
      else throw error;
    } finally {
      await leadership.end();
    }
  }

  #failed(error: unknown): void {
    this.#plan.backoff.failed();
    this.#plan.onError?.(error);
  }
}
