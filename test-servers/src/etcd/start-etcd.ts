import { freePort } from '../free-port.ts';
import { locationFor, readyAfter, startTogether, withAnotherPort } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { EtcdCluster } from './etcd-cluster.ts';
import { type EtcdMember, EtcdServer } from './etcd-server.ts';

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

/** Starts one server; ready when it serves. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  const { members } = await startEtcdCluster({ ...options, members: 1 });
  return members[0] as EtcdServer;
}

/** Starts a cluster; ready when every member serves. */
export async function startEtcdCluster(options: EtcdClusterOptions = {}): Promise<EtcdCluster> {
  return await withAnotherPort(() => startOn(options));
}

async function startOn(options: EtcdClusterOptions): Promise<EtcdCluster> {
  const { members: count = 3, electionTimeoutMs = 500, args = [] } = options;
  const members = await Promise.all(Array.from({ length: count }, (_, index) => newMember(`m${index}`)));
  const servers = members.map((member) => new EtcdServer(member, { members, electionTimeoutMs, args }));
  await startTogether(servers.map((server) => server.start()));
  const serving = async () => (await Promise.all(servers.map((server) => server.healthy()))).every(Boolean);
  return await readyAfter(new EtcdCluster(servers), () =>
    waitUntil(serving, { what: `${count} member(s) of etcd to serve`, timeoutMs: 15_000 }),
  );
}

async function newMember(name: string): Promise<EtcdMember> {
  return { name, location: await locationFor({ label: 'etcd' }), peerPort: await freePort() };
}
