import { waitUntil } from '../wait-until.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { type EtcdServer, freeMember, launchEtcd } from './etcd-server.ts';

export interface EtcdOptions {
  /** Also decides the shortest lease: one and a half times this, in whole seconds. @defaultValue 500 */
  readonly electionTimeoutMs?: number;
  /** More arguments of every member. */
  readonly args?: readonly string[];
}

export interface EtcdClusterOptions extends EtcdOptions {
  /** @defaultValue 3 */
  readonly members?: number;
}

/** A port is looked for before it is used: another process may be quicker. */
const TRIES = 3;

/** Starts one server; ready when it serves. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  const { members } = await startEtcdCluster({ ...options, members: 1 });
  return members[0] as EtcdServer;
}

/** Starts a cluster; ready when every member serves. */
export async function startEtcdCluster(options: EtcdClusterOptions = {}): Promise<EtcdCluster> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await tryCluster(options);
    } catch (error) {
      if (tries >= TRIES) throw error;
    }
  }
}

async function tryCluster(options: EtcdClusterOptions): Promise<EtcdCluster> {
  const { members: count = 3, electionTimeoutMs = 500, args = [] } = options;
  const members = await Promise.all(Array.from({ length: count }, (_, index) => freeMember(`m${index}`)));
  const servers = await Promise.all(
    members.map((member) => launchEtcd({ member, members, electionTimeoutMs, args })),
  );
  const cluster = new EtcdCluster(servers);
  try {
    const serving = async () => (await Promise.all(servers.map((server) => server.healthy()))).every(Boolean);
    await waitUntil(serving, { what: `${count} member(s) of etcd to serve`, timeoutMs: 15_000 });
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
