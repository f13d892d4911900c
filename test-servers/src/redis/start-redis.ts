import type { Address } from '@locks/core/conformance/proxy';
import { readyAfter, type ServerLocation, startTogether } from '../managed-server.ts';
import { waitUntil } from '../wait-until.ts';
import { launchRedis, type RedisServer, redisMajor } from './redis-server.ts';

export interface RedisOptions {
  /** More arguments of `redis-server`, as `['--maxmemory', '8mb']`. */
  readonly args?: readonly string[];
  /** Start as a replica; see {@link startReplicated} for one that waits until the link is up. */
  readonly replicaOf?: Address;
  /** @defaultValue a free port */
  readonly port?: number;
  /** The data directory, yours to delete. @defaultValue a fresh one, deleted by `stop` */
  readonly dir?: string;
  /** Asks every client for this password; the server's own `command` and `url` carry it. */
  readonly password?: string;
}

/** Starts a Redis server without persistence on a free port of 127.0.0.1. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return await launchRedis({
    label: 'redis',
    port: options.port,
    dir: options.dir,
    password: options.password,
    argv: async (location) => [...(await baseArguments(location)), ...optionArguments(options)],
  });
}

function optionArguments({ args = [], replicaOf, password }: RedisOptions): string[] {
  const replication = replicaOf ? ['--replicaof', replicaOf.host, String(replicaOf.port)] : [];
  const secret = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  return [...replication, ...secret, ...args];
}

/** The arguments of every private data node. */
export async function baseArguments({ port, dir }: ServerLocation): Promise<string[]> {
  const common = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  return [...common, '--repl-diskless-sync-delay', '0', ...(await modernArguments())];
}

/** Arguments that older versions would refuse. */
export async function modernArguments(): Promise<string[]> {
  if ((await redisMajor()) < 7) return [];
  // DEBUG (SLEEP and others) is off by default; a process that renames itself hides from `ps` whose it is.
  return ['--enable-debug-command', 'local', '--set-proc-title', 'no'];
}

export interface ReplicatedRedis extends AsyncDisposable {
  readonly master: RedisServer;
  readonly replicas: readonly RedisServer[];
  stop(): Promise<void>;
}

/** Starts a master and its replicas; ready when every replica is in sync and the master counts it. */
export async function startReplicated({
  replicas: count = 1,
  args = [],
  password,
}: {
  replicas?: number;
  args?: readonly string[];
  password?: string;
} = {}): Promise<ReplicatedRedis> {
  const secret = password === undefined ? {} : { password };
  const master = await startRedis({ args, ...secret });
  const replicas: RedisServer[] = [];
  const stop = async () => {
    await Promise.all([master, ...replicas].map((server) => server.stop()));
  };
  return await readyAfter({ master, replicas, stop, [Symbol.asyncDispose]: stop }, async () => {
    const starting = Array.from({ length: count }, () => startRedis({ args, replicaOf: master, ...secret }));
    replicas.push(...(await startTogether(starting)));
    await waitUntilLinked(master, replicas);
  });
}

/** Resolves when every replica is in sync and the master counts it. */
export async function waitUntilLinked(master: RedisServer, replicas: readonly RedisServer[]): Promise<void> {
  const linked = async () => {
    const { connected_slaves } = await master.info('replication');
    const infos = await Promise.all(replicas.map((replica) => replica.info('replication')));
    const up = infos.every((info) => info['master_link_status'] === 'up');
    return up && Number(connected_slaves) >= replicas.length;
  };
  await waitUntil(linked, { what: `${replicas.length} replicas of port ${master.port} to be in sync` });
}
