import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { ZookeeperQueueCheck } from '../checks/zookeeper-queue-check.ts';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { isPrompt, type Plan, type StoreFaultPlan } from '../workload/plan.ts';
import type { Change } from '../zookeeper/node-tree.ts';
import { type QueuedNode, queueOf, resourceOf } from '../zookeeper/queue-view.ts';
import { SimulatedSocket } from '../zookeeper/simulated-socket.ts';
import { SimulatedZookeeper } from '../zookeeper/simulated-zookeeper.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** What random numbers are for. */
const SERVERS = 1_000;
const SOCKETS = 1_001;

/** A simulated ZooKeeper, the network to it, and what is checked of each resource that is written. */
export class NetworkedZookeeper implements SimulatedStore {
  readonly name = 'zookeeper';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #servers: SimulatedZookeeper;
  readonly #sockets: SeededRandom;
  readonly #links: Link[] = [];
  readonly #checks = new Map<string, ZookeeperQueueCheck>();
  readonly #options: {
    readonly sessionTimeoutMs: number;
    readonly idleTtlMs: number;
    readonly connectTimeoutMs: number;
  };
  /** The session in which each acquisition entered last: what an earlier one left holds nothing, and ends with it. */
  readonly #newest = new Map<string, number>();
  #awayUntil = 0;
  standsStillUntil = 0;

  constructor(world: World, plan: Plan, drift: number) {
    this.#world = world;
    this.#plan = plan;
    this.#sockets = world.random.fork(SOCKETS);
    const random = world.random.fork(SERVERS);
    const sessionTimeoutMs = random.pick(SESSIONS_MS);
    this.#options = {
      sessionTimeoutMs,
      idleTtlMs: random.pick([50, 500, 5_000]),
      connectTimeoutMs: random.pick([300, 5_000]),
    };
    const lagMs = random.pick([0, SHORT_LAG_MS, 100, 500]);
    const tickMs = sessionTimeoutMs / random.pick([2, 5, 20]);
    this.#servers = new SimulatedZookeeper(world, random, {
      members: random.pick([1, 3, 3]),
      drift,
      tickMs,
      syncMs: tickMs * random.pick([5, 40]),
      hopMs: random.pick([0.05, 0.5]),
      // Where waits are timed no server is far behind.
      lagMs: () => (isPrompt(plan) || world.now > plan.faultsEndAt ? Math.min(lagMs, SHORT_LAG_MS) : lagMs),
      standsStillUntil: () => this.standsStillUntil,
      agreed: ({ change }) => this.#agreed(change),
    });
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  /** The servers cannot be reached, and go on. */
  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  /** What most servers have written stays. */
  suffer(fault: StoreFaultPlan): boolean {
    switch (fault.kind) {
      case 'restart':
        for (const link of this.#links) link.reset();
        this.#servers.elect(fault.downMs, 0);
        return false;
      case 'election':
        this.#servers.elect(fault.downMs, this.#servers.members.length > 1 ? fault.oldMs : 0);
        return false;
      case 'stand still':
        this.standsStillUntil = this.#world.now + fault.ms;
        return false;
      case 'follower cut off':
        this.#servers.cutFollower(fault.ms);
        return false;
      default:
        throw new Error(`a simulated ZooKeeper has no ${fault.kind}`);
    }
  }

  /** The client connects by sockets of the process, one after the other. */
  backendIn(process: SimulatedProcess, link: Link, { zookeeperBackend }: LoadedLocks): LockBackend {
    this.#links.push(link);
    const { members } = this.#servers;
    const random = this.#sockets.fork(this.#links.length);
    process.connect = ({ host }) => {
      const member = members.find(({ name }) => name === host);
      if (member === undefined) throw new Error(`there is no server ${host}`);
      return new SimulatedSocket({ process, link, random }, member);
    };
    // Some clients know one server only.
    const known = random.chance(0.25) ? [random.pick(members)] : members;
    const servers = known.map(({ name }) => `${name}:2181`).join(',');
    return zookeeperBackend(servers, this.#options) as LockBackend;
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const newest = this.#newest.get(acquisitionId);
    return this.#queue(resource).find(
      ({ id, owner, isHeld }) => isHeld && id === acquisitionId && owner === newest,
    )?.mode;
  }

  /** The nodes of resources stay where a process died, and those of the layout: what they are for has none. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    return this.#plan.resources.flatMap(({ name }) =>
      this.#queue(name)
        .filter(({ label = '' }) => isMeant(label))
        .map(
          ({ label, isHeld }) =>
            `the ${isHeld ? 'hold of' : 'wait for'} ${name} ${isHeld ? 'by' : 'of'} ${label}`,
        ),
    );
  }

  #queue(resource: string): QueuedNode[] {
    return queueOf(this.#servers.truth, resource);
  }

  #agreed(change: Change): void {
    if (change.kind === 'end session') {
      for (const { name } of this.#plan.resources) this.#check(name);
      return;
    }
    const changes = change.kind === 'several' ? change.changes : [change];
    const paths = changes.flatMap((one) => ('path' in one ? [one.path] : []));
    const written = new Set(paths.map(resourceOf).filter((resource) => resource !== undefined));
    for (const resource of written) this.#check(resource);
  }

  #check(resource: string): void {
    const queue = this.#queue(resource);
    this.#world.note(this.name, () => `${resource} ${inWords(queue)}`);
    const check = this.#checks.get(resource) ?? new ZookeeperQueueCheck(this.#world, resource);
    this.#checks.set(resource, check);
    check.written(queue);
    for (const { id, owner } of queue) this.#newest.set(id, Math.max(owner, this.#newest.get(id) ?? 0));
  }
}

/** A server that is sound is behind by so much at most. */
const SHORT_LAG_MS = 5;
/** The timeouts of sessions, in milliseconds. */
const SESSIONS_MS = [400, 1_000, 2_000];

function inWords(queue: readonly QueuedNode[]): string {
  const names = (held: boolean): string =>
    queue
      .filter(({ isHeld }) => isHeld === held)
      .map(({ label, mode }) => `${label}${mode === 'shared' ? ' (shared)' : ''}`)
      .join(', ') || 'nobody';
  return `is held by ${names(true)}, waited for by ${names(false)}`;
}
