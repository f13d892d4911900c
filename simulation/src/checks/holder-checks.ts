import type { LockMode } from '@locks/core';
import type { World } from '../kernel/world.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';

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
}

interface Holding {
  readonly by: Participant;
  readonly lease: HeldLease;
  /** What the holder may rely on: a share, from the moment in which it asks for a downgrade. */
  mode: LockMode;
  /** The signal, where the holder has read it. */
  readonly signal: AbortSignal | undefined;
  /** While the process stands still: true time until which its holder believes to hold. */
  believesUntil: number;
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
}

/** Holds the leases that users have to docs/spec.md §6, §7.3, §8.2 and §11, by what each holder can read at that moment. */
export class HolderChecks {
  readonly #world: World;
  readonly #resources = new Map<string, CheckedResource>();

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
    if (lease.validForMs <= 0) this.#violated('§1.4', `${by.label} got a lease on ${name} that is over`);
    this.#checkToken(resource, by, name, lease);
    this.#checkOthers(resource, by, name, lease);
    const signal = readsSignal ? lease.signal : undefined;
    resource.holdings.add({ by, lease, mode: lease.mode, signal, believesUntil: 0 });
    resource.progressAt = this.#world.now;
  }

  /** The user has asked to turn the hold into a share. */
  downgrades(name: string, lease: HeldLease): void {
    for (const holding of this.#resource(name).holdings)
      if (holding.lease === lease) holding.mode = { kind: 'shared' };
  }

  /** The user has released the lease, or takes it for lost. */
  ended(name: string, lease: HeldLease): void {
    const resource = this.#resource(name);
    resource.progressAt = this.#world.now;
    for (const holding of resource.holdings) if (holding.lease === lease) resource.holdings.delete(holding);
  }

  /** The process stands still from here on: what its holders believe follows from its clock alone. */
  standsStill(process: SimulatedProcess): void {
    for (const { holdings } of this.#resources.values()) {
      for (const holding of holdings) {
        if (holding.by.process !== process) continue;
        holding.believesUntil = this.#world.now + process.clock.trueTime(holding.lease.validForMs);
      }
    }
  }

  /** Nobody of a dead process holds or waits any more. */
  crashed(process: SimulatedProcess): void {
    for (const { holdings, waiting } of this.#resources.values()) {
      for (const holding of holdings) if (holding.by.process === process) holdings.delete(holding);
      for (const participant of waiting) if (participant.process === process) waiting.delete(participant);
    }
  }

  /** Everybody who waits makes progress: no wake-up is lost (docs/spec.md §7.3). */
  checkProgress(since: number, withinMs: number): void {
    const { now } = this.#world;
    for (const [name, { waiting, progressAt }] of this.#resources) {
      if (now - Math.max(progressAt, since) <= withinMs) continue;
      for (const { label, process } of waiting) {
        if (now - Math.max(progressAt, since, process.stalledUntil) <= withinMs) continue;
        this.#violated('§7.3', `${label} waits for ${name}, and nothing happens for ${withinMs} ms`);
        return;
      }
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
      this.#violated('§6.1', `${by.label} got the token ${token} of ${name} after ${resource.highestToken}`);
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
        this.#violated('§11.1', `${by.label} got ${name}, and ${holding.by.label} believes to hold it`);
        return;
      }
    }
  }

  /** The end of a lease by time is reported before anybody else enters (docs/spec.md §8.2). */
  #checkReport({ by: { process, label }, signal }: Holding, by: Participant, name: string): void {
    // A process that stood still reports it in its next timer phase, but before another of the same process enters.
    const stoodStill = process.isPaused || process.stalledUntil >= this.#world.now;
    if (signal === undefined || (stoodStill && process !== by.process)) return;
    this.#violated('§8.2', `${by.label} got ${name} before its end was reported to ${label}`);
  }

  #believes({ by: { process }, lease, believesUntil }: Holding): boolean {
    return process.standsStill ? this.#world.now < believesUntil : lease.validForMs > 0;
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
      };
      this.#resources.set(name, resource);
    }
    return resource;
  }
}

/** Whether one more may hold beside those who hold (docs/spec.md §15.1, §15.5), decided apart from core. */
function fitTogether(held: readonly LockMode[], mode: LockMode): boolean {
  if (held.length === 0) return true;
  if (mode.kind === 'exclusive' || held.some(({ kind }) => kind !== mode.kind)) return false;
  if (mode.kind === 'shared') return true;
  const weight = held.reduce((sum, other) => sum + (other.kind === 'permit' ? other.weight : 0), 0);
  return weight + mode.weight <= mode.limit;
}
