import type { World } from '../kernel/world.ts';
import type { CohortPlan } from '../workload/plan.ts';
import type { HeldLease, Participant } from './holder-checks.ts';

/** The low bits of a token count the turns of a lease (docs/backends/cohort.md). */
const TURN_BITS = 8n;
const MOST_DRIFT = 0.005;
/** Between the begin of a turn and the moment in which its user has it, in milliseconds. */
const DELIVERED_WITHIN_MS = 5;

/** Two thirds of a lease are left when it is passed on (docs/spec.md §18.4), but for the margins. */
const LEAST_PART = 0.65;
const MARGIN_MS = 4;

/** What is known of somebody who has a turn. */
export interface TurnUser {
  /** Nothing failed: nobody asked a second time, and whoever has a turn knows it at once. */
  readonly isPrompt: boolean;
  /** How long the renewal takes that core sends before it delivers a turn of which less than two thirds are left. */
  readonly renewedWithinMs: number;
  /** Nor did anybody stand still: nobody came too late for a grant. */
  /** Neither a fault nor a steal makes anybody ask again. */
  readonly keepsOrder: boolean;
  /** For how long the store keeps the lease from its grant or its renewal on; `undefined`: a hand-off may be shorter. */
  readonly keepsForMs: number | undefined;
}

/** A lease at the store, as the users of its turns see it. */
interface SeenLease {
  /** True time at which the user of the first turn had it; `undefined`: who had the first turn gave up. */
  readonly grantedAt: number | undefined;
  readonly process: string;
  turns: number;
  lastStartedAt: number;
}

/** Holds the turns of cohorts to docs/spec.md §18.1 to §18.4, by what their users see. */
export class CohortChecks {
  readonly #world: World;
  readonly #limits: CohortPlan;
  readonly #leases = new Map<string, SeenLease>();

  constructor(world: World, limits: CohortPlan) {
    this.#world = world;
    this.#limits = limits;
  }

  /** The user of a turn has it, at this very moment. */
  delivered({ process, label, startedAt }: Participant, name: string, lease: HeldLease, by: TurnUser): void {
    const { fencingToken } = lease;
    if (fencingToken === undefined) return;
    const { now } = this.#world;
    const { turns, withinMs } = this.#limits;
    const isFirst = (fencingToken & ((1n << TURN_BITS) - 1n)) === 0n;
    const key = `${name} ${fencingToken >> TURN_BITS}`;
    const seen = this.#leases.get(key) ?? {
      grantedAt: isFirst ? now : undefined,
      process: process.name,
      turns: 0,
      lastStartedAt: startedAt,
    };
    this.#leases.set(key, seen);
    seen.turns += 1;
    const violated = (clause: string, what: string): void =>
      this.#world.violated(clause, `${label} has a turn with a lease of ${name} ${what}`);
    if (seen.process !== process.name) violated('§18.1', `of ${seen.process}`);
    if (seen.turns > turns) violated('§18.2', `that has served ${turns}`);
    if (by.keepsOrder && startedAt < seen.lastStartedAt) violated('§18.2', 'after somebody who came later');
    seen.lastStartedAt = startedAt;
    if (by.keepsForMs !== undefined && !isFirst && lease.validForMs < LEAST_PART * by.keepsForMs - MARGIN_MS)
      violated('§18.4', `of which ${lease.validForMs} ms are left, of ${by.keepsForMs} ms`);
    if (seen.grantedAt === undefined) return;
    if (startedAt > seen.grantedAt) violated('§18.2', 'that was granted before it came');
    const mostMs = withinMs * (1 + 2 * MOST_DRIFT) + DELIVERED_WITHIN_MS + by.renewedWithinMs;
    if (by.isPrompt && now - seen.grantedAt > mostMs)
      violated('§18.3', `that was granted ${now - seen.grantedAt} ms ago`);
  }
}
