import { freePort } from '../free-port.ts';
import { locationFor, readyAfter, ServerGroup, startTogether, withAnotherPort } from '../managed-server.ts';
import type { Proxy } from '@locks/core/conformance/proxy';
import { startProxy } from '../proxy/start-proxy.ts';
import { waitUntil } from '../wait-until.ts';
import { ZooKeeperServer } from './zookeeper-server.ts';

/**
 * For this many ticks of 200 ms a follower without messages of its leader goes on serving reads: longer than the
 * sessions of the tests.
 */
const SYNC_TICKS = 25;
const HOST = '127.0.0.1';

export interface ZooKeeperEnsembleOptions {
  /** @defaultValue 3 */
  readonly members?: number;
  /** Whether {@link ZooKeeperEnsemble.cutFromLeader} can be used: the members then connect through proxies of this process. */
  readonly partitionable?: boolean;
}

/** Servers that elect a leader among them. */
export class ZooKeeperEnsemble extends ServerGroup<ZooKeeperServer> {
  /** By the id of the member that connects. */
  readonly #links: ReadonlyMap<number, readonly Proxy[]>;

  constructor(members: readonly ZooKeeperServer[], links: ReadonlyMap<number, readonly Proxy[]>) {
    super(members);
    this.#links = links;
  }

  /** The connect string. */
  get servers(): string {
    return this.members.map(({ address }) => address).join(',');
  }

  /** The leader; waits for the election of one. */
  async leader(): Promise<ZooKeeperServer> {
    return await this.#find('leader');
  }

  /** One of the followers; waits until there is one. */
  async follower(): Promise<ZooKeeperServer> {
    return await this.#find('follower');
  }

  /**
   * Drops everything between a follower and its leader, in both directions. For five seconds the follower goes on
   * answering reads. Gives the function that ends the cut.
   */
  async cutFromLeader(follower: ZooKeeperServer): Promise<() => Promise<void>> {
    const links = this.#links.get(follower.id);
    if (links === undefined) throw new Error('Start the ensemble with { partitionable: true } to cut it.');
    for (const link of links) link.blackhole();
    return async () => {
      await Promise.all(links.map((link) => link.heal()));
    };
  }

  override async stop(): Promise<void> {
    await super.stop();
    await Promise.all([...this.#links.values()].flat().map((link) => link.stop()));
  }

  async #find(mode: 'leader' | 'follower'): Promise<ZooKeeperServer> {
    const found = async () => {
      const running = this.members.filter((member) => member.running);
      const modes = await Promise.all(running.map((member) => member.mode()));
      return running[modes.indexOf(mode)];
    };
    return await waitUntil(found, { what: `a ${mode}`, timeoutMs: 20_000, everyMs: 20 });
  }
}

/** Starts an ensemble; ready when every member serves clients. */
export async function startZookeeperEnsemble(
  options: ZooKeeperEnsembleOptions = {},
): Promise<ZooKeeperEnsemble> {
  return await withAnotherPort(() => startOn(options));
}

async function startOn({
  members: count = 3,
  partitionable = false,
}: ZooKeeperEnsembleOptions): Promise<ZooKeeperEnsemble> {
  const plans = await Promise.all(
    Array.from({ length: count }, async (_, index) => ({
      id: index + 1,
      location: await locationFor({ label: 'zookeeper' }),
      quorum: await freePort(),
      election: await freePort(),
    })),
  );
  const links = new Map<number, Proxy[]>();
  const members: ZooKeeperServer[] = [];
  for (const { id, location } of plans) {
    const own: Proxy[] = [];
    const config = ['initLimit=50', `syncLimit=${SYNC_TICKS}`];
    for (const other of plans) {
      let { quorum } = other;
      if (partitionable && other.id !== id) {
        const link = await startProxy({ host: HOST, port: quorum }, { protocol: 'raw' });
        own.push(link);
        quorum = link.port;
      }
      config.push(`server.${other.id}=${HOST}:${quorum}:${other.election}`);
    }
    if (partitionable) links.set(id, own);
    members.push(new ZooKeeperServer(location, { id, config }));
  }
  return await readyAfter(new ZooKeeperEnsemble(members, links), () =>
    startTogether(members.map((member) => member.start())),
  );
}
