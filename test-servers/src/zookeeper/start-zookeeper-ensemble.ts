import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { type Proxy, startProxy } from '../proxy/proxy.ts';
import { waitUntil } from '../wait-until.ts';
import { ZooKeeperServer } from './zookeeper-server.ts';

/**
 * For this many ticks of 200 ms a follower that hears nothing of its leader goes on serving reads: longer than the
 * sessions of the tests.
 */
const SYNC_TICKS = 25;
const HOST = '127.0.0.1';

export interface ZooKeeperEnsembleOptions {
  /** @defaultValue 3 */
  readonly members?: number;
  /** Whether {@link ZooKeeperEnsemble.cutFromLeader} is wanted: the members then speak through proxies of this process. */
  readonly partitionable?: boolean;
}

/** Servers that elect a leader among them. */
export class ZooKeeperEnsemble implements AsyncDisposable {
  readonly members: readonly ZooKeeperServer[];
  /** By the id of the member that connects. */
  readonly #links: ReadonlyMap<number, readonly Proxy[]>;

  constructor(members: readonly ZooKeeperServer[], links: ReadonlyMap<number, readonly Proxy[]>) {
    this.members = members;
    this.#links = links;
  }

  /** The connect string. */
  get servers(): string {
    return this.members.map(({ address }) => address).join(',');
  }

  /** Waits for one if there is none just now. */
  async leader(): Promise<ZooKeeperServer> {
    return await waitUntil(() => this.#find('leader'), { what: 'a leader', timeoutMs: 20_000, everyMs: 20 });
  }

  /** Any of the followers; waits for one if there is none just now. */
  async follower(): Promise<ZooKeeperServer> {
    return await waitUntil(() => this.#find('follower'), {
      what: 'a follower',
      timeoutMs: 20_000,
      everyMs: 20,
    });
  }

  /**
   * Swallows everything between a follower and its leader, in both directions. For five seconds the follower goes on
   * answering reads. Gives what mends it.
   */
  async cutFromLeader(follower: ZooKeeperServer): Promise<() => Promise<void>> {
    const links = this.#links.get(follower.id);
    if (links === undefined) throw new Error('Start the ensemble with { partitionable: true } to cut it.');
    for (const link of links) link.blackhole();
    return async () => {
      await Promise.all(links.map((link) => link.heal()));
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
    await Promise.all([...this.#links.values()].flat().map((link) => link.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #find(mode: 'leader' | 'follower'): Promise<ZooKeeperServer | undefined> {
    const running = this.members.filter((member) => member.running);
    const modes = await Promise.all(running.map((member) => member.mode()));
    return running[modes.indexOf(mode)];
  }
}

/** Starts an ensemble; ready when every member serves clients. */
export async function startZookeeperEnsemble({
  members: count = 3,
  partitionable = false,
}: ZooKeeperEnsembleOptions = {}): Promise<ZooKeeperEnsemble> {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const ports = new Map<number, Record<'client' | 'quorum' | 'election', number>>();
  for (const id of ids) {
    ports.set(id, { client: await freePort(), quorum: await freePort(), election: await freePort() });
  }
  const portsOf = (id: number) => ports.get(id) as Record<'client' | 'quorum' | 'election', number>;
  const links = new Map<number, Proxy[]>();
  const guard = await guardian();
  const members: ZooKeeperServer[] = [];
  for (const id of ids) {
    const own: Proxy[] = [];
    const config = ['initLimit=50', `syncLimit=${SYNC_TICKS}`];
    for (const other of ids) {
      let { quorum } = portsOf(other);
      if (partitionable && other !== id) {
        const link = await startProxy({ host: HOST, port: quorum }, { protocol: 'raw' });
        own.push(link);
        quorum = link.port;
      }
      config.push(`server.${other}=${HOST}:${quorum}:${portsOf(other).election}`);
    }
    if (partitionable) links.set(id, own);
    const dir = await guard.makeDirectory('zookeeper');
    members.push(new ZooKeeperServer({ port: portsOf(id).client, dir, config, id }));
  }
  const ensemble = new ZooKeeperEnsemble(members, links);
  try {
    await Promise.all(members.map((member) => member.launch()));
    await Promise.all(members.map((member) => member.untilReady()));
    return ensemble;
  } catch (error) {
    await ensemble.stop();
    throw error;
  }
}
