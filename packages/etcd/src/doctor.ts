import { LockError } from '@locks/core';
import {
  clockDifference,
  type Diagnosis,
  error,
  failureOf,
  type Finding,
  found,
  layoutFinding,
  oldVersion,
  warning,
} from '@locks/core/doctor';
import { Etcd3, type IOptions } from 'etcd3';
import {
  checkOptions,
  clientOptions,
  clientSource,
  type EtcdBackendOptions,
  type EtcdClient,
} from './options.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

/** The share of the quota from which on the quota is nearly used up. */
const NEARLY = 0.8;
const LIMIT_MS = 3_000;
/** `Date` of HTTP has whole seconds. */
const DATE_RESOLUTION_MS = 1_000;

const FREE_SPACE =
  'compact, defragment, and then `etcdctl alarm disarm`; turn on --auto-compaction-retention, or raise --quota-backend-bytes';

/** A member that answers. */
interface Member {
  readonly host: string;
  readonly version: string;
  readonly bytes: number;
  readonly quota: number | undefined;
  readonly hasLeader: boolean;
}

interface AskedMember {
  readonly host: string;
  /** The member; `undefined` where it does not answer. */
  readonly member: Member | undefined;
  /** Why it does not answer. */
  readonly failure?: unknown;
}

/** The value in place of the leader's id while there is no leader. */
const NO_LEADER = '0';

// setup: import { examineEtcd } from '@locks/etcd/doctor';
/**
 * Examines the members of the cluster of the locks, each by itself: their versions, their space, their clocks, and whether they know a
 * leader. No key is written; a lease of a second is granted and revoked.
 *
 * @param client - an `Etcd3`, or the options for one: each member is asked with its options
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; `LOCK_BACKEND` where no member answers
 * @example
 * ```ts
 * const { findings } = await examineEtcd({ hosts: ['http://10.0.0.1:2379', 'http://10.0.0.2:2379'] });
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineEtcd(client: EtcdClient, options: EtcdBackendOptions = {}): Promise<Diagnosis> {
  const what = 'examineEtcd()';
  const { waiterTtlSeconds } = checkOptions(options, what);
  const { options: asLocks } = clientSource(client, what);
  const named = await Promise.all([asLocks.hosts].flat().map((host) => askMember(asLocks, host)));
  const answering = named.flatMap(({ member }) => (member === undefined ? [] : [member]));
  if (answering.length === 0) {
    const reason = failureOf(named[0]?.failure).message;
    throw new LockError('LOCK_BACKEND', `no member of etcd answers: ${reason}`, { cause: named[0]?.failure });
  }
  const led = answering.find(({ hasLeader }) => hasLeader);
  // Without a leader a cluster answers for no more than the state of each member.
  const findings =
    led === undefined ? memberFindings(named) : await clusterFindings(asLocks, led, waiterTtlSeconds);
  return { store: 'etcd', version: (led ?? answering[0])?.version, findings, explain };
}

function explain(failure: unknown): Finding | undefined {
  const { message } = failureOf(failure);
  if (message.includes('space exceeded')) return error('etcd/no-space', message, FREE_SPACE);
  return layoutFinding('etcd', failure);
}

/** Asks one member by a client of its own, with the options of the client of the locks. */
async function askAt<T>(options: IOptions, host: string, work: (client: Etcd3) => Promise<T>): Promise<T> {
  const client = new Etcd3(clientOptions({ ...options, hosts: host }));
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** @param led - a member that knows a leader: it can answer for the cluster */
function clusterFindings(options: IOptions, led: Member, waiterSeconds: number): Promise<Finding[]> {
  return askAt(options, led.host, async (client) => {
    const { members: listed } = await client.cluster.memberList({}, limited());
    const all = [...new Set([options.hosts, ...listed.flatMap(({ clientURLs }) => clientURLs)].flat())];
    const asked = await Promise.all(all.map((host) => askMember(options, host)));
    const members = asked.flatMap(({ member }) => (member === undefined ? [] : [member]));
    const alarms = await alarmFindings(client);
    return [
      ...memberFindings(asked),
      ...alarms,
      ...found(
        listed.length === 1 && singleFinding(),
        ...versionsOf(members).map((version) => oldVersion('etcd', version, SERVER_VERSIONS.etcd)),
        ...members.map(quotaFinding),
        ...(await Promise.all(members.map(({ host }) => clockFinding(host)))),
        // A store without space has none for a lease.
        alarms.length === 0 && (await electionFinding(client, waiterSeconds)),
      ),
    ];
  });
}

function memberFindings(asked: readonly AskedMember[]): Finding[] {
  return [
    ...found(...asked.map(({ host, member }) => member === undefined && downFinding(host))),
    ...found(
      ...asked.map(
        ({ host, member }) => member !== undefined && !member.hasLeader && leaderlessFinding(host),
      ),
    ),
  ];
}

function versionsOf(members: readonly Member[]): string[] {
  return [...new Set(members.map(({ version }) => version))];
}

function limited(): { readonly deadline: number } {
  return { deadline: Date.now() + LIMIT_MS };
}

async function askMember(options: IOptions, host: string): Promise<AskedMember> {
  try {
    const status = await askAt(options, host, (client) => client.maintenance.status(limited()));
    const { version, dbSize, leader } = status;
    const hasLeader = leader !== NO_LEADER;
    return { host, member: { host, version, bytes: Number(dbSize), quota: await quotaOf(host), hasLeader } };
  } catch (failure) {
    return { host, member: undefined, failure };
  }
}

/** The quota as the member's metrics have it; `undefined` where the metrics are served elsewhere. */
async function quotaOf(host: string): Promise<number | undefined> {
  try {
    const response = await fetch(`${host}/metrics`, { signal: AbortSignal.timeout(LIMIT_MS) });
    const [, bytes] = /^etcd_server_quota_backend_bytes (\S+)$/m.exec(await response.text()) ?? [];
    return bytes === undefined ? undefined : Number(bytes);
  } catch {
    return undefined;
  }
}

async function alarmFindings(client: Etcd3): Promise<Finding[]> {
  const { alarms } = await client.maintenance.alarm({}, limited());
  return alarms.map(({ alarm, memberID }) =>
    alarm.toUpperCase() === 'NOSPACE'
      ? error(
          'etcd/no-space',
          `the database of member ${memberID} is full: etcd refuses all writes, and locks end by their ttl`,
          FREE_SPACE,
        )
      : error(
          'etcd/corrupt',
          `member ${memberID} raised the alarm ${alarm}: members disagree about the data`,
          'stop trusting the locks, and follow "Data corruption" in etcd’s operations guide',
        ),
  );
}

function quotaFinding({ host, bytes, quota }: Member): Finding | undefined {
  if (quota === undefined || !(quota > 0) || bytes < NEARLY * quota) return undefined;
  return warning(
    'etcd/quota',
    `the database of ${host} has ${bytes} of ${quota} bytes: when it is full, etcd refuses all writes, and locks end by their ttl`,
    'turn on --auto-compaction-retention, defragment, or raise --quota-backend-bytes',
  );
}

function downFinding(host: string): Finding {
  return warning(
    'etcd/member-down',
    `the member at ${host} does not answer from here`,
    'bring it back: with a majority away nothing is granted, released or renewed; or check its --advertise-client-urls',
  );
}

function leaderlessFinding(host: string): Finding {
  return error(
    'etcd/no-leader',
    `the member at ${host} knows no leader: it serves no locks`,
    'check that it reaches the other members (peer URLs)',
  );
}

function singleFinding(): Finding {
  return warning(
    'etcd/single-member',
    'the cluster has one member: while it is away nothing is granted or renewed, and its disk is the only copy',
    'run three or five members',
  );
}

async function clockFinding(host: string): Promise<Finding | undefined> {
  try {
    return await clockDifference(
      'etcd',
      async () => {
        const { headers } = await fetch(`${host}/version`, { signal: AbortSignal.timeout(LIMIT_MS) });
        return Date.parse(headers.get('date') ?? '');
      },
      DATE_RESOLUTION_MS,
    );
  } catch {
    // HTTP is served elsewhere. No lock depends on this clock.
    return undefined;
  }
}

/** The finding for a long election timeout: servers grant no lease shorter than one and a half election timeouts. */
async function electionFinding(client: Etcd3, waiterSeconds: number): Promise<Finding | undefined> {
  let shortest: number;
  try {
    const { ID, TTL } = await client.leaseClient.leaseGrant({ TTL: 1 }, limited());
    await client.leaseClient.leaseRevoke({ ID }, limited());
    shortest = Number(TTL);
  } catch (failure) {
    // The database is full, and no write has raised the alarm yet: tried locks find that too.
    if (explain(failure) !== undefined) return undefined;
    throw failure;
  }
  if (shortest <= waiterSeconds) return undefined;
  return warning(
    'etcd/election-timeout',
    `the shortest lease is ${shortest} s: a dead waiter delays the next one for so long, and shorter ttls are raised to it`,
    'lower --election-timeout (and --heartbeat-interval) where the network between the members allows it',
  );
}
