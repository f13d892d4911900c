import type { Cluster, Redis } from 'ioredis';
import { clusterClient, type RedisClient, readRedisUrl, redisClient } from '../redis-client.ts';
import { clockDifference } from './clock-difference.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, unknown, warning } from './finding.ts';
import { oldVersion } from './old-version.ts';

/** The fields of `INFO`. */
type Info = Readonly<Record<string, string>>;

/** The share of a limit from which on the limit is nearly used up. */
const NEARLY = 0.9;

const OPTIONS = { maxRetriesPerRequest: 1, enableReadyCheck: false };

const READING: TrialReading = {
  failure({ message }) {
    if (/NOPERM|No permissions|can't run this command/i.test(message))
      return {
        id: 'redis/acl',
        severity: 'error',
        toDo: 'grant the user what the message names; all that locks need stands in docs/backends/redis.md, "Rights"',
      };
    if (message.includes('NOREPLICAS'))
      return {
        id: 'redis/min-replicas',
        severity: 'error',
        toDo: 'fewer replicas are connected than min-replicas-to-write wants, and the server refuses to write: bring them back, or lower min-replicas-to-write',
      };
    if (message.includes('OOM'))
      return {
        id: 'redis/memory',
        severity: 'error',
        toDo: 'raise maxmemory, or give the locks a server of their own',
      };
    return undefined;
  },
  warnings: {
    LOCKS_REDIS_EVICTION: {
      id: 'redis/eviction',
      severity: 'error',
      toDo: 'CONFIG SET maxmemory-policy noeviction, and in redis.conf; or give the locks a server of their own',
    },
    LOCKS_REDIS_CHANNEL: {
      id: 'redis/channel',
      severity: 'warning',
      toDo: 'without the right to its channel a waiter finds out by polling, up to a second late: grant what the message names',
    },
  },
};

export async function examineRedis({ url, locks }: ExaminedStore): Promise<Diagnosis> {
  const address = readRedisUrl(url);
  const opened: RedisClient[] = [];
  const open = (client: RedisClient): RedisClient => {
    // Every failed call rejects with its error, so the event is ignored.
    client.on('error', () => undefined);
    opened.push(client);
    return client;
  };
  try {
    const client = open(redisClient(address, OPTIONS));
    const info = await readInfo(client);
    const inCluster = client.isCluster || info?.['cluster_enabled'] === '1';
    const impossible = inCluster ? await clusterFinding(client) : replicaFinding(info);
    const version = info?.['redis_version'];
    // Such a cluster refuses every trial.
    if (impossible !== undefined && inCluster) return { store: 'redis', version, findings: [impossible] };
    const whole = inCluster && !client.isCluster ? open(clusterClient(address, OPTIONS)) : client;
    const settings = await Promise.all((await mastersOf(whole)).map(settingFindings));
    const findings = [
      ...found(impossible),
      // A finding that several masters have in common is reported once.
      ...new Map(settings.flat().map((finding) => [finding.id, finding])).values(),
      ...found(await clockFinding(whole)),
      ...(impossible === undefined ? await trialFindings('redis', locks, READING) : []),
    ];
    return { store: 'redis', version, findings };
  } finally {
    for (const client of opened) client.disconnect();
  }
}

async function mastersOf(client: RedisClient): Promise<readonly Redis[]> {
  if (!isCluster(client)) return [client];
  // A cluster client knows no master before it has connected.
  await client.ping();
  return client.nodes('master');
}

function isCluster(client: RedisClient): client is Cluster {
  return client.isCluster;
}

async function settingFindings(server: Redis): Promise<Finding[]> {
  const info = await readInfo(server);
  return found(...infoFindings(info), await appendFindings(server, info));
}

/** Reads `INFO`; `undefined` where the user may not. */
async function readInfo(client: RedisClient): Promise<Info | undefined> {
  try {
    const lines = (await client.info()).split('\r\n');
    return Object.fromEntries(lines.map((line) => line.split(/:(.*)/s).slice(0, 2) as [string, string]));
  } catch (cause) {
    if (isForbidden(cause)) return undefined;
    throw cause;
  }
}

function isForbidden(cause: unknown): boolean {
  return /NOPERM|unknown command/i.test(String(cause));
}

function replicaFinding(info: Info | undefined): Finding | undefined {
  if (info?.['role'] !== 'slave') return undefined;
  return error(
    'redis/replica',
    `this server is a replica of ${info['master_host']}:${info['master_port']} and refuses to write`,
    'give the address of the master, or redis+sentinel://… with those of the sentinels',
  );
}

async function clusterFinding(client: RedisClient): Promise<Finding | undefined> {
  try {
    const state = String(await client.cluster('INFO'));
    if (!state.includes('cluster_state:fail')) return undefined;
    return error(
      'redis/cluster',
      'the cluster does not serve all slots (cluster_state is fail): names of the others cannot be locked',
      'look at CLUSTER NODES: bring the masters back, or assign their slots to others (`redis-cli --cluster fix`)',
    );
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    return undefined;
  }
}

function infoFindings(info: Info | undefined): (Finding | undefined)[] {
  if (info === undefined)
    return [
      unknown(
        'redis/info',
        'this user may not call INFO: eviction, persistence, replication, memory and version are not known',
        'run `locks doctor` as a user with +info, or grant that',
      ),
    ];
  return [
    oldVersion('redis', 'redis', info['redis_version'] ?? ''),
    memoryFinding(info),
    connectionsFinding(info),
    failoverFinding(info),
  ];
}

function memoryFinding(info: Info): Finding | undefined {
  const [used, most] = [Number(info['used_memory']), Number(info['maxmemory'])];
  if (!(most > 0) || used < NEARLY * most || info['maxmemory_policy'] !== 'noeviction') return undefined;
  return warning(
    'redis/memory',
    `${used} of ${most} bytes of maxmemory are used: when it is full, new locks are refused (OOM)`,
    'raise maxmemory, or give the locks a server of their own',
  );
}

function connectionsFinding(info: Info): Finding | undefined {
  const [used, most] = [Number(info['connected_clients']), Number(info['maxclients'])];
  if (!(used >= NEARLY * most)) return undefined;
  return warning(
    'redis/connections',
    `${used} of ${most} connections (maxclients) are in use: each process with locks needs two`,
    'raise maxclients, or find out who keeps so many connections',
  );
}

function failoverFinding(info: Info): Finding | undefined {
  // `INFO` has the field `min_slaves_good_slaves` only where min-replicas-to-write is set.
  if (!(Number(info['connected_slaves']) > 0) || info['min_slaves_good_slaves'] !== undefined)
    return undefined;
  return warning(
    'redis/failover',
    'replication is asynchronous, and min-replicas-to-write is 0: a master that is cut off goes on granting locks, and a failover loses the last of them',
    'set min-replicas-to-write and min-replicas-max-lag; give programs `minReplicas`; check the fencing token where the data lives',
  );
}

async function appendFindings(client: Redis, info: Info | undefined): Promise<Finding | undefined> {
  if (info === undefined) return undefined;
  if (info['aof_enabled'] !== '1')
    return warning(
      'redis/persistence',
      'there is no append-only file (appendonly no): a restart loses all leases, or those since the last snapshot, and a lock can be granted while its holder still works',
      'CONFIG SET appendonly yes, and in redis.conf; without it, check the fencing token where the data lives',
    );
  try {
    const [, policy] = (await client.config('GET', 'appendfsync')) as string[];
    if (policy === undefined || policy === 'always') return undefined;
    const lost = policy === 'everysec' ? 'the last second' : 'the last half minute';
    return warning(
      'redis/appendfsync',
      `appendfsync is ${policy}: a power cut loses the grants of ${lost} (a crash of the server alone does not)`,
      'CONFIG SET appendfsync always where that must not happen; otherwise check the fencing token where the data lives',
    );
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    return unknown(
      'redis/config',
      'this user may not call CONFIG GET: how often the append-only file reaches the disk is not known',
      'run `locks doctor` as a user with +config|get, or look at appendfsync yourself',
    );
  }
}

async function clockFinding(client: RedisClient): Promise<Finding | undefined> {
  try {
    // The connection is open: the time is that of one round trip.
    return await clockDifference('redis', async () => {
      const [seconds, micros] = await client.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    });
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    // Locks cannot do without the clock either: the trial reports the failure.
    return undefined;
  }
}
