// One file, since each check reads what the same observations left of a holder.
import type { LockMode } from '@locks/core';
import type { World } from '../kernel/world.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { FencedResource, type LateWrites } from './fenced-resource.ts';
import { fitTogether } from './fit-together.ts';

/** What a check reads of a lease. */
export interface HeldLease {
  readonly acquisitionId: string;
  readonly fencingToken?: bigint | undefined;
  readonly mode: LockMode;
  readonly validForMs: number;
  readonly signal: AbortSignal;
}

/** Somebody who asks for resources, waits for them, and perhaps holds them. */
export interface Participant {
  readonly process: SimulatedProcess;
  readonly label: string;
  readonly resources: readonly string[];
  /** True time. */
  readonly startedAt: number;
  readonly steals: boolean;
  /** A lease that was taken away is reported within this time, where nothing fails; `Infinity` where nothing renews it. */
  readonly learnsWithinMs: number;
}

interface Holding {
  readonly by: Participant;
  readonly lease: HeldLease;
  /** True time at which its user had it. */
  readonly deliveredAt: number;
  /** What the holder may rely on: a share, from the moment in which it asks for a downgrade. */
  mode: LockMode;
  /** The store has confirmed a downgrade. */
  isDowngraded: boolean;
  /** The signal, where the holder has read it. */
  readonly signal: AbortSignal | undefined;
  /** Until when the holder counted on the lease when it looked last, by its monotonic clock. */
  countedUntil: number;
  /** While the process stands still: true time until which its holder believes to hold. */
  believesUntil: number;
  /** Writes once more to what the lock protects. */
  readonly write: () => void;
}

interface CheckedResource {
  readonly holdings: Set<Holding>;
  readonly waiting: Set<Participant>;
  /** By acquisition id, whoever holds them. */
  readonly tokens: Map<bigint, string>;
  highestToken: bigint;
  /** True time until which an operator may have taken leases away. */
  takenAwayUntil: number;
  /** True time of the last grant, release or end of a wait. */
  progressAt: number;
  /** What exclusive holders write to. */
  readonly fenced: FencedResource;
}

/** Holds the leases that users have to docs/spec.md §6, §7.3, §8.2 and §11, by what each holder can read at that moment. */
export class HolderChecks {
  readonly #world: World;
  readonly #resources = new Map<string, CheckedResource>();
  readonly lateWrites: LateWrites = { late: 0, stopped: 0 };

  constructor(world: World) {
    this.#world = world;
  }

  waits(participant: Participant): void {
    for (const name of participant.resources) {
      const resource = this.#resource(name);
      if (resource.waiting.size === 0) resource.progressAt = this.#world.now;
      resource.waiting.add(participant);
    }
  }

  waitsNoMore(participant: Participant): void {
    for (const name of participant.resources) {
      const resource = this.#resource(name);
      if (resource.waiting.delete(participant)) resource.progressAt = this.#world.now;
    }
  }

  /** From here on, and until the function that it gives is called, an operator may take leases of the resource away. */
  takesAway(name: string, unansweredMs: number): () => void {
    const resource = this.#resource(name);
    resource.takenAwayUntil = Infinity;
    return () => {
      resource.takenAwayUntil = this.#world.now + unansweredMs;
    };
  }

  /** Whether an operator may have taken the lease away. */
  mayBeTaken({ resources, startedAt }: Participant): boolean {
    return resources.some((name) => startedAt <= this.#resource(name).takenAwayUntil);
  }

  /** The user has got a lease, at this very moment. */
  delivered(by: Participant, name: string, lease: HeldLease, readsSignal: boolean): void {
    const resource = this.#resource(name);
    if (lease.validForMs <= 0) {
      // The process stood still after the locks had looked at the lease for the last time: whoever reads it is told.
      if (by.process.isLate && lease.signal.aborted) return;
      this.#violated('§1.4', `${by.label} got a lease on ${name} that is over`);
    }
    this.#checkToken(resource, by, name, lease);
    this.#checkOthers(resource, by, name, lease);
    if (by.steals) this.#checkStolen(resource, by, name, lease);
    const signal = readsSignal ? lease.signal : undefined;
    const { mode, fencingToken } = lease;
    const writes = mode.kind === 'exclusive' && fencingToken !== undefined;
    const write = writes ? resource.fenced.enter(by.label, fencingToken) : () => {};
    resource.holdings.add({
      by,
      lease,
      deliveredAt: this.#world.now,
      mode,
      isDowngraded: false,
      signal,
      countedUntil: 0,
      believesUntil: this.#believedUntil(by, lease),
      write,
    });
    resource.progressAt = this.#world.now;
  }

  /** The user has asked to turn the hold into a share. */
  downgrades(name: string, lease: HeldLease): void {
    for (const holding of this.#resource(name).holdings)
      if (holding.lease === lease) holding.mode = { kind: 'shared' };
  }

  /** The user was told that the hold is a share. */
  downgraded(name: string, lease: HeldLease): void {
    for (const holding of this.#resource(name).holdings)
      if (holding.lease === lease) holding.isDowngraded = true;
  }

  /** Until when the holder counted on the lease when it looked last, by its monotonic clock. */
  countedUntil(name: string, lease: HeldLease): number {
    let until = 0;
    for (const holding of this.#resource(name).holdings)
      if (holding.lease === lease) until = holding.countedUntil;
    return until;
  }

  /** The user has released the lease, or takes it for lost. */
  ended(name: string, lease: HeldLease): void {
    const resource = this.#resource(name);
    resource.progressAt = this.#world.now;
    for (const holding of resource.holdings) {
      if (holding.lease !== lease) continue;
      resource.holdings.delete(holding);
      // As a holder writes that does not look at its lease any more.
      holding.write();
    }
  }

  /** The process stands still from here on: what its holders believe follows from its clock alone. */
  standsStill(process: SimulatedProcess): void {
    for (const { holdings } of this.#resources.values()) {
      for (const holding of holdings) {
        if (holding.by.process !== process) continue;
        holding.believesUntil = this.#believedUntil(holding.by, holding.lease);
      }
    }
  }

  #believedUntil({ process }: Participant, lease: HeldLease): number {
    return this.#world.now + process.clock.trueTime(lease.validForMs);
  }

  /** Nobody of a dead process holds or waits any more. */
  crashed(process: SimulatedProcess): void {
    for (const { holdings, waiting } of this.#resources.values()) {
      for (const holding of holdings) {
        if (holding.by.process === process) holdings.delete(holding);
      }
      for (const participant of waiting) if (participant.process === process) waiting.delete(participant);
    }
  }

  /**
   * Whoever believes to hold, holds in the store, and in its mode (docs/spec.md §1.2), unless that lost data or an operator took it
   * away. Whatever is read of a lease that is over says so (§1.3).
   */
  checkStore(isHeld: (name: string, id: string, modes: readonly LockMode['kind'][]) => boolean): void {
    if (this.#world.isDataLost) return;
    for (const [name, { holdings }] of this.#resources) {
      for (const holding of holdings) {
        const { by, lease, signal, mode } = holding;
        if (signal?.aborted === true || this.mayBeTaken(by)) continue;
        if (this.#believes(holding)) {
          if (!by.process.standsStill) holding.countedUntil = by.process.clock.monotonic() + lease.validForMs;
          if (isHeld(name, lease.acquisitionId, modesOf(holding))) continue;
          const what = `${by.label} believes to hold ${name}, ${mode.kind}, and the store does not say so`;
          return this.#violated('§1.2', what);
        }
        if (!by.process.standsStill && !lease.signal.aborted)
          this.#violated('§1.3', `${by.label} reads a lease on ${name} that is over, and it does not say so`);
      }
    }
  }

  /** Everybody who waits makes progress: no wake-up is lost (docs/spec.md §7.3). */
  checkProgress(since: number, withinMs: number): void {
    const { now } = this.#world;
    for (const [name, { waiting, progressAt }] of this.#resources) {
      if (now - Math.max(progressAt, since) <= withinMs) continue;
      for (const { label, process } of waiting) {
        // One pause may begin in the moment in which another one ends.
        if (process.isPaused || now - Math.max(progressAt, since, process.stalledUntil) <= withinMs) continue;
        this.#violated('§7.3', `${label} waits for ${name}, and nothing happens for ${withinMs} ms`);
        return;
      }
    }
  }

  /** Where nothing fails, whoever waits for a resource that nobody holds enters soon (docs/spec.md §7.3). */
  checkIdle(withinMs: number): void {
    const { now } = this.#world;
    for (const [name, { waiting, holdings, progressAt, takenAwayUntil }] of this.#resources) {
      if (holdings.size > 0 || now - progressAt <= withinMs || now <= takenAwayUntil) continue;
      // A set may hold one of its resources while it waits for another.
      if ([...waiting].some(({ resources }) => resources.length > 1)) continue;
      for (const { label, startedAt } of waiting)
        if (now - startedAt > withinMs)
          return this.#violated('§7.3', `${label} waits for ${name}, which nobody holds, for ${withinMs} ms`);
    }
  }

  /** The holders before a steal learn of it at their next renewal (docs/spec.md §8.3, §17.1). */
  #checkStolen(resource: CheckedResource, by: Participant, name: string, lease: HeldLease): void {
    for (const holding of resource.holdings) {
      const { learnsWithinMs, label } = holding.by;
      // Without tokens nobody can tell which of two came first that were under way together.
      const isLater =
        lease.fencingToken === undefined
          ? holding.deliveredAt > by.startedAt
          : (holding.lease.fencingToken ?? 0n) > lease.fencingToken;
      if (isLater || learnsWithinMs === Infinity) continue;
      this.#world.schedule(this.#world.now + learnsWithinMs, () => {
        if (resource.holdings.has(holding) && holding.lease.validForMs > 0)
          this.#violated('§8.3', `${label} was not told that ${by.label} has stolen ${name}`);
      });
    }
  }

  #checkToken(resource: CheckedResource, by: Participant, name: string, lease: HeldLease): void {
    const { fencingToken: token, acquisitionId } = lease;
    if (token === undefined) return;
    const other = resource.tokens.get(token);
    if (other !== undefined && other !== acquisitionId)
      this.#violated('§6.1', `${by.label} got the token ${token} of ${name}, which another had`);
    resource.tokens.set(token, acquisitionId);
    // Shares and permits that overlap may reach their holders in any order.
    if (lease.mode.kind === 'exclusive' && token <= resource.highestToken && !this.mayBeTaken(by))
      // What was granted before a loss of data may be delivered after it, with a set.
      this.#world.violatedUnlessLost(
        '§6.1',
        `${by.label} got the token ${token} of ${name} after ${resource.highestToken}`,
      );
    if (token > resource.highestToken) resource.highestToken = token;
  }

  #checkOthers(resource: CheckedResource, by: Participant, name: string, lease: HeldLease): void {
    // Who lost a lease to an operator learns that at the next renewal (docs/spec.md §8.3, §17.1).
    if (this.mayBeTaken(by)) return;
    const believed: LockMode[] = [];
    for (const holding of resource.holdings) {
      // The signal is looked at first: to read the validity would report a loss that no timer has found.
      if (holding.signal?.aborted === true || this.mayBeTaken(holding.by)) continue;
      if (this.#believes(holding)) believed.push(holding.mode);
      else if (!fitTogether([holding.mode], lease.mode)) this.#checkReport(holding, by, name);
      if (!fitTogether(believed, lease.mode)) {
        this.#world.violatedUnlessLost(
          '§11.1',
          `${by.label} got ${name}, and ${holding.by.label} believes to hold it`,
        );
        return;
      }
    }
  }

  /** The end of a lease by time is reported before anybody else enters (docs/spec.md §8.2). */
  #checkReport(
    { by: { process, label }, lease, signal, believesUntil }: Holding,
    by: Participant,
    name: string,
  ): void {
    // A process that stood still reports it in its next timer phase, but before another of the same process enters.
    const { now } = this.#world;
    const lateUntil =
      process.timerLateMs > 0 ? believesUntil + process.timerLateMs : Number.NEGATIVE_INFINITY;
    const stoodStill = process.isPaused || Math.max(process.stalledUntil, lateUntil) >= now;
    if (signal === undefined || by.process.isLate) return;
    if (stoodStill && process !== by.process) {
      // Whatever is read of it then says so at once (docs/spec.md §1.3).
      if (!process.standsStill && !lease.signal.aborted)
        this.#violated('§1.3', `${label} reads a lease on ${name} that is over, and it does not say so`);
      return;
    }
    this.#world.violatedUnlessLost('§8.2', `${by.label} got ${name} before its end was reported to ${label}`);
  }

  #believes({ by: { process }, lease, believesUntil }: Holding): boolean {
    if (!process.standsStill) return lease.validForMs > 0;
    // In the event in whose middle the process stands still it may have been told of the end.
    return this.#world.now < believesUntil && !(process.isInTurn && lease.signal.aborted);
  }

  #violated(clause: string, message: string): void {
    this.#world.violated(clause, message);
  }

  #resource(name: string): CheckedResource {
    let resource = this.#resources.get(name);
    if (resource === undefined) {
      resource = {
        holdings: new Set(),
        waiting: new Set(),
        tokens: new Map(),
        highestToken: 0n,
        takenAwayUntil: Number.NEGATIVE_INFINITY,
        progressAt: 0,
        fenced: new FencedResource(this.#world, name, this.lateWrites),
      };
      this.#resources.set(name, resource);
    }
    return resource;
  }
}

/** In which modes a store may keep what its holder believes: where a downgrade was asked for, and not confirmed, in either. */
function modesOf({ mode, lease, isDowngraded }: Holding): readonly LockMode['kind'][] {
  return isDowngraded ? ['shared'] : [mode.kind, lease.mode.kind];
}
