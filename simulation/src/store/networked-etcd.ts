import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { EtcdClient } from '@locks/etcd';
import { EntryCheck } from '../checks/entry-check.ts';
import { entryOf, type EntryView, prefixOf, resourceOf, stealMarkOf } from '../etcd/entry-view.ts';
import { SimulatedEtcd } from '../etcd/simulated-etcd.ts';
import { SimulatedEtcdClient } from '../etcd/simulated-etcd-client.ts';
import { type KeyEvent, NO_LEASE } from '../etcd/versioned-keys.ts';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { Plan, StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** The one key that stays. */
const LAYOUT = 'locks///layout';
/** What random numbers are for. */
const WAITERS = 1_000;

/** A simulated etcd, the network to it, and what is checked of each resource that is written. */
export class NetworkedEtcd implements SimulatedStore {
  readonly name = 'etcd';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #server: SimulatedEtcd;
  readonly #links: Link[] = [];
  readonly #checks = new Map<string, EntryCheck>();
  readonly #waiterTtlMs: number;
  #awayUntil = 0;
  /** While there is no leader nothing ends, and while the server stands still nothing happens. */
  #idleUntil = 0;
  standsStillUntil = 0;

  constructor(world: World, plan: Plan, drift: number) {
    this.#world = world;
    this.#plan = plan;
    this.#waiterTtlMs = world.random.fork(WAITERS).pick([1_000, 3_000, 6_000]);
    this.#server = new SimulatedEtcd(world, {
      drift,
      shortestSeconds: 1,
      idleUntil: () => Math.max(this.#idleUntil, this.standsStillUntil),
      written: (events, by) => this.#written(events, by === 'transaction'),
    });
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  /** The members cannot be reached, and the leader goes on, or there is none meanwhile. */
  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
    if (this.#world.random.chance(0.5)) this.#elect(ms, 0);
  }

  /** What a majority has written stays. */
  suffer(fault: StoreFaultPlan): boolean {
    const { now } = this.#world;
    switch (fault.kind) {
      case 'restart':
        for (const link of this.#links) link.reset();
        this.#elect(fault.downMs, 0);
        return false;
      case 'election':
        this.#elect(fault.downMs, fault.oldMs);
        return false;
      case 'stand still':
        this.standsStillUntil = now + fault.ms;
        return false;
      case 'compaction':
        this.#server.compact();
        return false;
      case 'streams end':
        this.#server.endStreams();
        if (fault.compacts) this.#world.schedule(now + 1, () => this.#server.compact());
        return false;
      default:
        throw new Error(`a simulated etcd has no ${fault.kind}`);
    }
  }

  backendIn(process: SimulatedProcess, link: Link, { etcdBackend }: LoadedLocks): LockBackend {
    this.#links.push(link);
    const client = new SimulatedEtcdClient({ process, link, server: this.#server });
    const { requestTimeoutMs } = this.#plan;
    return etcdBackend(client as unknown as EtcdClient, {
      requestTimeoutMs,
      waiterTtlMs: this.#waiterTtlMs,
    }) as LockBackend;
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const key = this.#server.keys.get(`${prefixOf(resource)}${acquisitionId}`);
    const entry = key === undefined ? undefined : entryOf(key);
    return entry?.isHeld === true ? entry.mode.kind : undefined;
  }

  /** Leases and markers of sessions end by themselves: a key without a lease would stay for ever. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const left = this.#plan.resources.flatMap(({ name }) =>
      this.#entries(name)
        .filter(({ label = '' }) => isMeant(label))
        .map(
          ({ label, isHeld }) =>
            `the ${isHeld ? 'hold of' : 'wait for'} ${name} ${isHeld ? 'by' : 'of'} ${label}`,
        ),
    );
    const endless = this.#server.keys
      .within({ from: '', to: '\u{ffff}' })
      .filter(({ key, lease }) => lease === NO_LEASE && key !== LAYOUT);
    return [...left, ...endless.map(({ key }) => `the key ${key}, which has no end,`)];
  }

  #entries(resource: string): EntryView[] {
    const from = prefixOf(resource);
    return this.#server.keys.within({ from, to: `${from}\u{ffff}` }).map(entryOf);
  }

  #elect(downMs: number, oldMs: number): void {
    const { now } = this.#world;
    this.#awayUntil = now + downMs;
    this.#idleUntil = now + downMs;
    this.#server.elect(now + downMs + oldMs);
  }

  #written(events: readonly KeyEvent[], isWanted: boolean): void {
    for (const resource of new Set(events.map(({ key }) => resourceOf(key)))) {
      if (resource === undefined) continue;
      const entries = this.#entries(resource);
      this.#world.note(this.name, () => `${resource} ${inWords(entries)}`);
      const check = this.#checks.get(resource) ?? new EntryCheck(this.#world, resource);
      this.#checks.set(resource, check);
      check.written(entries, { isWanted, stolenBy: this.#server.keys.get(stealMarkOf(resource))?.lease });
    }
    this.#checkLeases(events);
  }

  /** A lease serves one hold at a time: else the end of one would end another (docs/spec.md §1.5). */
  #checkLeases(events: readonly KeyEvent[]): void {
    for (const { written } of events) {
      if (written === undefined || resourceOf(written.key) === undefined || !entryOf(written).isHeld)
        continue;
      const others = this.#plan.resources
        .flatMap(({ name }) => this.#entries(name))
        .filter(({ id, lease, isHeld }) => isHeld && lease === written.lease && id !== entryOf(written).id);
      for (const { label } of others)
        this.#world.violated('§1.5', `${entryOf(written).label} holds by the lease of ${label}`);
    }
  }
}

function inWords(entries: readonly EntryView[]): string {
  const names = (held: boolean): string =>
    entries
      .filter(({ isHeld }) => isHeld === held)
      .toSorted((a, b) => a.position - b.position)
      .map(({ label }) => label)
      .join(', ') || 'nobody';
  return `is held by ${names(true)}, waited for by ${names(false)}`;
}
