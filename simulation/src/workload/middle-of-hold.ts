import type { FencedLease, Lock } from '@locks/core';
import type { HeldLease, Participant } from '../checks/holder-checks.ts';
import type { OperationChecks } from './operation-checks.ts';
import type { OperationContext } from './operation-context.ts';
import type { OperationPlan } from './plan.ts';

/** A lease of the workload, and what it can do in every mode. */
export type AnyLease = HeldLease & {
  renew(ttlMs?: number): Promise<void>;
  release(): Promise<void>;
  downgrade?(): Promise<void>;
};

/** How long a re-entry lasts, where two take turns, in milliseconds. */
const RE_ENTRY_MS = 4;

/** What a holder does in the middle of a hold: renewals, a downgrade, re-entries. */
export class MiddleOfHold {
  readonly #context: OperationContext;
  readonly #plan: OperationPlan;
  readonly #by: Participant;
  readonly #checks: OperationChecks;

  constructor(context: OperationContext, plan: OperationPlan, by: Participant, checks: OperationChecks) {
    this.#context = context;
    this.#plan = plan;
    this.#by = by;
    this.#checks = checks;
  }

  /** @param lock - what the lease is of */
  async with(lease: AnyLease, lock: () => Lock): Promise<void> {
    const { during, ttlMs, kind } = this.#plan;
    const shorterMs = Math.max(50, Math.floor(ttlMs / 2));
    switch (during) {
      case 'renew':
        return lease.renew();
      case 'extend':
        return this.#renew(lease, 2 * ttlMs);
      case 'shorten':
        return this.#shorten(lease, shorterMs);
      case 'longer, shorter':
        return this.#renewTwice(lease, 2 * ttlMs, shorterMs);
      case 'shorter, longer':
        return this.#renewTwice(lease, shorterMs, 2 * ttlMs);
      case 'downgrade':
        if (kind === 'all' || lease.mode.kind !== 'exclusive') return;
        this.#context.checks.downgrades(this.#by.resources[0] as string, lease);
        await lease.downgrade?.();
        return this.#context.checks.downgraded(this.#by.resources[0] as string, lease);
      case 're-enter':
      case 're-enter twice': {
        if (kind === 'all') return;
        const within = lease as unknown as FencedLease;
        const inner = await lock().acquire({ within, waitMs: 100 });
        this.#checks.reentered(lease, inner as unknown as HeldLease);
        return inner.release();
      }
      case 'nothing':
        return;
      default:
        during satisfies never;
    }
  }

  /** Enters a reentrant lock inside of itself; those who enter beside each other take turns (docs/spec.md §5.3). */
  async reenter(lock: Lock, lease: AnyLease): Promise<void> {
    const { process } = this.#context;
    const isTwice = this.#plan.during === 're-enter twice';
    let inside = 0;
    const enter = (): Promise<void> =>
      lock.run(
        async (inner) => {
          this.#checks.reentered(lease, inner as unknown as HeldLease);
          inside += 1;
          if (inside > 1 && lease.validForMs > 0)
            process.world.violated('§5.3', `two re-entries of ${this.#by.label} are inside at the same time`);
          if (isTwice) await process.sleep(RE_ENTRY_MS);
          inside -= 1;
        },
        // After the end of the lease it is an acquire like any other.
        { ttlMs: this.#plan.ttlMs, label: this.#by.label },
      );
    await Promise.all(isTwice ? [enter(), enter()] : [enter()]);
  }

  async #renew(lease: AnyLease, ttlMs: number): Promise<void> {
    const { clock } = this.#context.process;
    const startedAt = clock.monotonic();
    await lease.renew(ttlMs);
    this.#checks.renewed(lease, ttlMs, clock.monotonic() - startedAt);
  }

  async #shorten(lease: AnyLease, ttlMs: number): Promise<void> {
    const { process, latencyMs } = this.#context;
    const renewal = this.#renew(lease, ttlMs);
    await this.#keepsTo(lease, ttlMs, renewal);
    await renewal;
    for (let looks = 0; looks < 3; looks += 1) {
      await process.sleep(1 + latencyMs);
      this.#checks.shortened(lease, ttlMs);
    }
  }

  /** Renews for two times, and sends the second renewal before the first is answered. */
  async #renewTwice(lease: AnyLease, firstMs: number, secondMs: number): Promise<void> {
    const first = lease.renew(firstMs);
    const second = lease.renew(secondMs);
    const both = Promise.allSettled([first, second]);
    if (secondMs < firstMs) await this.#keepsTo(lease, secondMs, both);
    await both;
    await second;
  }

  /** Looks at a lease while its renewal for a shorter time is under way. */
  async #keepsTo(lease: AnyLease, ttlMs: number, renewal: Promise<unknown>): Promise<void> {
    const { process, latencyMs } = this.#context;
    let isAnswered = false;
    const answered = (): void => {
      isAnswered = true;
    };
    renewal.then(answered, answered);
    while (!isAnswered) {
      this.#checks.shortened(lease, ttlMs);
      await process.sleep(1 + latencyMs / 2);
    }
  }
}
