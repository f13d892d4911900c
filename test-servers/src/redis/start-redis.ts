import { waitUntil } from '../wait-until.ts';
import { launchRedis, type RedisServer, redisMajor } from './redis-server.ts';
import type { RedisAddress } from './send-command.ts';

export interface RedisOptions {
  /** More arguments of `redis-server`, as `['--maxmemory', '8mb']`. */
  readonly args?: readonly string[];
  /** Start as a replica; see {@link startReplicated} for one that waits until the link is up. */
  readonly replicaOf?: RedisAddress;
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
    argv: async (place) => [...(await baseArguments(place)), ...optionArguments(options)],
  });
}

function optionArguments({ args = [], replicaOf, password }: RedisOptions): string[] {
  const replication = replicaOf ? ['--replicaof', replicaOf.host, String(replicaOf.port)] : [];
  const secret = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
  return [...replication, ...secret, ...args];
}

/** What every private data node is started with. */
export async function baseArguments({ port, dir }: { port: number; dir: string }): Promise<string[]> {
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
  const started: RedisServer[] = [master];
  const stop = async () => {
    await Promise.all(started.map((server) => server.stop()));
  };
  try {
    const replicas = await startAll(started, count, () => startRedis({ args, replicaOf: master, ...secret }));
    await waitUntilLinked(master, replicas);
    return { master, replicas, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts `count` servers at once and notes each in `started`, so that a failure of one leaves none behind. */
export async function startAll(
  started: RedisServer[],
  count: number,
  start: (index: number) => Promise<RedisServer>,
): Promise<RedisServer[]> {
  const results = await Promise.allSettled(Array.from({ length: count }, (_, index) => start(index)));
  const servers = results.filter((result) => result.status === 'fulfilled').map((result) => result.value);
  started.push(...servers);
  const failure = results.find((result) => result.status === 'rejected');
  if (failure) throw failure.reason;
  return servers;
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
