import { answerWithin } from '@locks/core/backend';
import {
  clockDifference,
  type Diagnosis,
  error,
  failureOf,
  type Finding,
  found,
  layoutFinding,
  oldVersion,
  unknown,
  warning,
} from '@locks/core/doctor';
import type { NodeSender, RedisPort } from './port.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

/** The fields of `INFO`. */
type Info = Readonly<Record<string, string>>;

/** The share of a limit from which on the limit is nearly used up. */
const NEARLY = 0.9;
const LIMIT_MS = 5_000;

/** What the warnings of the backend mean, by their code. */
const WARNINGS: Readonly<Record<string, (message: string) => Finding>> = {
  LOCKS_REDIS_EVICTION: (message) =>
    error(
      'redis/eviction',
      message,
      'CONFIG SET maxmemory-policy noeviction, and in redis.conf; or give the locks a server of their own',
    ),
  LOCKS_REDIS_CHANNEL: (message) =>
    warning(
      'redis/channel',
      message,
      'without the right to its channel a waiter finds out by polling, up to a second late: grant what the message names',
    ),
};

/**
 * Examines the masters that a client reaches: memory, persistence, replication, connections, clocks. Nothing is written.
 *
 * @throws errors of the client as they are, and a `NoAnswerError` after 5 s
 */
export async function examineRedisThrough(port: RedisPort): Promise<Diagnosis> {
  const first: NodeSender = (command) => answerWithin(port.send('', command), LIMIT_MS);
  const info = await readInfo(first);
  const inCluster = port.cluster || info?.['cluster_enabled'] === '1';
  const impossible = inCluster ? await clusterFinding(first) : replicaFinding(info);
  const examined = { store: 'redis', version: info?.['redis_version'], explain };
  // Such a cluster may know no masters.
  if (impossible !== undefined && inCluster) return { ...examined, findings: [impossible] };
  const settings = await Promise.all((await port.masters()).map(settingFindings));
  const findings = found(
    impossible,
    // A finding that several masters have in common is reported once.
    ...new Map(settings.flat().map((finding) => [finding.id, finding])).values(),
    await clockFinding(first),
  );
  return { ...examined, findings };
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  const [ofWarning] = codes.filter((code) => code.startsWith('LOCKS_'));
  if (ofWarning !== undefined) return WARNINGS[ofWarning]?.(message);
  if (/NOPERM|No permissions|can't run this command/i.test(message))
    return error(
      'redis/acl',
      message,
      'grant the user what the message names; all that locks need stands in docs/backends/redis.md, "Rights"',
    );
  if (message.includes('NOREPLICAS'))
    return error(
      'redis/min-replicas',
      message,
      'fewer replicas are connected than min-replicas-to-write wants, and the server refuses to write: bring them back, or lower min-replicas-to-write',
    );
  if (message.includes('OOM'))
    return error('redis/memory', message, 'raise maxmemory, or give the locks a server of their own');
  return layoutFinding('redis', failure);
}

async function settingFindings(master: NodeSender): Promise<Finding[]> {
  const ask: NodeSender = (command) => answerWithin(master(command), LIMIT_MS);
  const info = await readInfo(ask);
  return found(...infoFindings(info), await appendFinding(ask, info));
}

/** Reads `INFO`; `undefined` where the user may not. */
async function readInfo(ask: NodeSender): Promise<Info | undefined> {
  try {
    const lines = String(await ask(['INFO'])).split('\r\n');
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

async function clusterFinding(ask: NodeSender): Promise<Finding | undefined> {
  try {
    const state = String(await ask(['CLUSTER', 'INFO']));
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
    oldVersion('redis', info['redis_version'] ?? '', SERVER_VERSIONS.redis),
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

async function appendFinding(ask: NodeSender, info: Info | undefined): Promise<Finding | undefined> {
  if (info === undefined) return undefined;
  if (info['aof_enabled'] !== '1')
    return warning(
      'redis/persistence',
      'there is no append-only file (appendonly no): a restart loses all leases, or those since the last snapshot, and a lock can be granted while its holder still works',
      'CONFIG SET appendonly yes, and in redis.conf; without it, check the fencing token where the data lives',
    );
  try {
    const policy = settingIn(await ask(['CONFIG', 'GET', 'appendfsync']));
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

/** The one setting of a reply, which clients give as a list, as an object, as a `Map`, or as a list of `{ key, value }`. */
function settingIn(reply: unknown): string | undefined {
  const [first, ...more] =
    Array.isArray(reply) || reply instanceof Map ? [...reply].flat() : Object.entries(reply as object).flat();
  return typeof first === 'object' ? first.value : more[0];
}

async function clockFinding(ask: NodeSender): Promise<Finding | undefined> {
  try {
    // The connection is open: the time is that of one round trip.
    return await clockDifference('redis', async () => {
      const [seconds, micros] = (await ask(['TIME'])) as string[];
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    });
  } catch (cause) {
    if (!isForbidden(cause)) throw cause;
    // Locks cannot do without the clock either: the trial reports the failure.
    return undefined;
  }
}
