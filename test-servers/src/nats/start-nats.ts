import { assertFetched } from '../aws/assert-fetched.ts';
import { freePort } from '../free-port.ts';
import { locationFor, readyAfter, startTogether, withAnotherPort } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { NatsCluster } from './nats-cluster.ts';
import { type NatsMember, type NatsPlan, NatsServer } from './nats-server.ts';

export interface NatsOptions {
  /** More arguments of every member, as `['--user', 'app', '--pass', 'secret']`. */
  readonly args?: readonly string[];
  /**
   * Whether JetStream is enabled.
   * @defaultValue true
   */
  readonly jetStream?: boolean;
}

export interface NatsClusterOptions extends NatsOptions {
  /** @defaultValue 3 */
  readonly members?: number;
}

/** Starts one server with JetStream; ready when it serves. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const { members } = await startNatsCluster({ ...options, members: 1 });
  return members[0] as NatsServer;
}

/** Starts a cluster with JetStream; ready when it has a leader. */
export async function startNatsCluster(options: NatsClusterOptions = {}): Promise<NatsCluster> {
  assertFetched('nats');
  return await withAnotherPort(() => startOn(options));
}

async function startOn(options: NatsClusterOptions): Promise<NatsCluster> {
  const { members: count = 3, args = [], jetStream = true } = options;
  const members = await Promise.all(Array.from({ length: count }, (_, index) => newMember(index)));
  const plan: NatsPlan = { members, args, jetStream };
  const servers = await startTogether(members.map((member) => new NatsServer(member, plan).start()));
  const serving = async () => {
    const leaders = await Promise.all(servers.map((server) => server.metaLeader()));
    return count === 1 || (leaders[0] !== undefined && new Set(leaders).size === 1);
  };
  return await readyAfter(new NatsCluster(servers), () =>
    waitUntil(serving, { what: `${count} server(s) of NATS to serve JetStream`, timeoutMs: 20_000 }),
  );
}

async function newMember(index: number): Promise<NatsMember> {
  const location = await locationFor({ label: 'nats' });
  return {
    name: `n${index}-${location.port}`,
    location,
    monitorPort: await freePort(),
    routePort: await freePort(),
  };
}
