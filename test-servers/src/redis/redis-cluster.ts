import type { Address } from '@locks/core/conformance/proxy';
import { ServerGroup } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { type MigrationHooks, moveSlot } from './migrate-slot.ts';
import type { RedisServer } from './redis-server.ts';
import { parseInfo, sendCommand } from './send-command.ts';
import { slotOf } from './slot-of.ts';

/** One node as the cluster sees it now. */
export interface ClusterNodeView {
  readonly server: RedisServer;
  readonly id: string;
  readonly role: 'master' | 'replica';
  readonly masterId: string | undefined;
  /** Inclusive ranges. */
  readonly slots: readonly (readonly [from: number, to: number])[];
  readonly failed: boolean;
}

export class RedisCluster extends ServerGroup<RedisServer> {
  readonly replicasPerMaster: number;

  constructor(nodes: readonly RedisServer[], replicasPerMaster: number) {
    super(nodes);
    this.replicasPerMaster = replicasPerMaster;
  }

  /** First the initial masters, then their replicas. `topology` reports the present roles. */
  get nodes(): readonly RedisServer[] {
    return this.members;
  }

  /** The list of nodes from which a client starts. */
  get roots(): Address[] {
    return this.nodes.map(({ host, port }) => ({ host, port }));
  }

  slotOf(key: string): number {
    return slotOf(key);
  }

  /** The cluster as the first node that answers sees it. */
  async topology(): Promise<ClusterNodeView[]> {
    let cause: unknown;
    for (const node of this.nodes.filter(({ running }) => running)) {
      try {
        return await this.topologySeenBy(node);
      } catch (error) {
        cause = error;
      }
    }
    throw new Error('No node of the cluster answers.', { cause });
  }

  async topologySeenBy(node: RedisServer): Promise<ClusterNodeView[]> {
    const reply = await sendCommand(node, ['CLUSTER', 'NODES'], { timeoutMs: 1_000 });
    const lines = String(reply).trimEnd().split('\n');
    return lines.map((line) => this.#parseNode(line)).filter((view) => view !== undefined);
  }

  /** The master of a slot. */
  async slotOwner(slot: number): Promise<RedisServer> {
    return ownerIn(await this.topology(), slot).server;
  }

  /** The replicas of a master. */
  async replicasOf(master: RedisServer): Promise<RedisServer[]> {
    const views = await this.topology();
    const id = views.find(({ server }) => server === master)?.id;
    return views.filter(({ masterId }) => masterId === id).map(({ server }) => server);
  }

  /** Resolves when every node that answers sees another owner of the slot than the master at `oldPort`. */
  async waitForNewOwner(slot: number, oldPort: number, timeoutMs = 30_000): Promise<RedisServer> {
    const moved = async () => {
      const owner = await this.slotOwner(slot);
      return owner.port !== oldPort && (await this.#agreeOnOwner(slot, owner)) ? owner : undefined;
    };
    return await waitUntil(moved, { what: `slot ${slot} to leave port ${oldPort}`, timeoutMs, everyMs: 25 });
  }

  /**
   * Moves a slot and its keys to another master, as `redis-cli --cluster reshard` does. The hooks are called while the
   * slot is on its way; when one throws, the migration is completed and the error rethrown.
   *
   * Only one migration at a time: two in opposite directions block each other (`MIGRATE` stops its server until the other
   * has answered), and two that end together may take the same configuration epoch, so that nodes never agree.
   */
  async migrateSlot(slot: number, target: RedisServer, hooks: MigrationHooks = {}): Promise<void> {
    const views = (await this.topology()).filter(({ failed }) => !failed);
    const to = views.find(({ server }) => server === target);
    if (to?.role !== 'master') throw new Error(`Port ${target.port} is not a master of this cluster.`);
    const from = ownerIn(views, slot);
    if (from === to) throw new Error(`Port ${target.port} has slot ${slot} already.`);
    const others = views.filter((view) => view.role === 'master' && view !== from && view !== to);
    await moveSlot(slot, { from, to, others: others.map(({ server }) => server) }, hooks);
    const agreed = () => this.#agreeOnOwner(slot, target);
    await waitUntil(agreed, {
      what: `every node to know that slot ${slot} moved`,
      timeoutMs: 20_000,
      everyMs: 25,
    });
  }

  /** Resolves when every node reports that all slots are served, and every replica is in sync with its master. */
  async waitUntilReady(timeoutMs = 30_000): Promise<void> {
    const ready = async () =>
      (await Promise.all(this.nodes.map((node) => this.#isReady(node)))).every(Boolean);
    await waitUntil(ready, { what: 'the cluster to be ready', timeoutMs, everyMs: 25 });
  }

  async #isReady(node: RedisServer): Promise<boolean> {
    const state = parseInfo(await node.command('CLUSTER', 'INFO'))['cluster_state'];
    if (state !== 'ok') return false;
    const views = await this.topologySeenBy(node);
    const masters = views.filter(({ role, slots }) => role === 'master' && slots.length > 0);
    const attached = masters.every(
      ({ id }) => views.filter(({ masterId }) => masterId === id).length >= this.replicasPerMaster,
    );
    if (!attached || views.length !== this.nodes.length || views.some(({ failed }) => failed)) return false;
    const replication = await node.info('replication');
    return replication['role'] === 'master' || replication['master_link_status'] === 'up';
  }

  async #agreeOnOwner(slot: number, owner: RedisServer): Promise<boolean> {
    const running = this.nodes.filter((node) => node.running);
    const views = await Promise.allSettled(running.map((node) => this.topologySeenBy(node)));
    const answers = views.filter((view) => view.status === 'fulfilled').map(({ value }) => value);
    return (
      answers.length > 0 &&
      answers.every((view) => view.some((node) => node.server === owner && owns(node, slot)))
    );
  }

  #parseNode(line: string): ClusterNodeView | undefined {
    const [id = '', address = '', flagList = '', masterId, , , , , ...ranges] = line.split(' ');
    const port = Number(/:(\d+)@/.exec(address)?.[1]);
    const server = this.nodes.find((node) => node.port === port);
    const flags = flagList.split(',');
    if (!server || flags.includes('handshake')) return undefined;
    return {
      server,
      id,
      role: flags.includes('master') ? 'master' : 'replica',
      masterId: masterId === '-' ? undefined : masterId,
      // Brackets mark slots that are being migrated.
      slots: ranges.filter((range) => !range.startsWith('[')).map(parseRange),
      failed: flags.includes('fail') || flags.includes('noaddr'),
    };
  }
}

function parseRange(text: string): [number, number] {
  const [from, to = from] = text.split('-').map(Number);
  return [from ?? Number.NaN, to ?? Number.NaN];
}

function owns(view: ClusterNodeView, slot: number): boolean {
  return view.slots.some(([from, to]) => slot >= from && slot <= to);
}

function ownerIn(views: readonly ClusterNodeView[], slot: number): ClusterNodeView {
  const owner = views.find((view) => view.role === 'master' && !view.failed && owns(view, slot));
  if (!owner) throw new Error(`No live master owns slot ${slot}.`);
  return owner;
}
