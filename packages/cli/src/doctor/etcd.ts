import { clientOptions } from '@locks/etcd';
import { Etcd3 } from 'etcd3';
import { etcdHosts } from '../store-url.ts';
import { clockDifference } from './clock-difference.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, warning } from './finding.ts';
import { oldVersion } from './old-version.ts';

/** The share of the quota from which on the quota is nearly used up. */
const NEARLY = 0.8;
const LIMIT_MS = 3_000;
/** The default lifetime of a waiter's entry without renewal, in seconds: servers should grant nothing longer. */
const WAITER_SECONDS = 3;
/** `Date` of HTTP has whole seconds. */
const DATE_RESOLUTION_MS = 1_000;

const READING: TrialReading = {
  failure(reason) {
    return isFull(reason) ? { id: 'etcd/no-space', severity: 'error', toDo: FREE_SPACE } : undefined;
  },
};
const FREE_SPACE =
  'compact, defragment, and then `etcdctl alarm disarm`; turn on --auto-compaction-retention, or raise --quota-backend-bytes';

function isFull({ message }: { readonly message: string }): boolean {
  return message.includes('space exceeded');
}

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
}

/** The value in place of the leader's id while there is no leader. */
const NO_LEADER = '0';

/** @throws LockError `LOCK_BACKEND` where no member of the URL answers */
export async function examineEtcd({ url, locks }: ExaminedStore): Promise<Diagnosis> {
  const hosts = etcdHosts(url);
  const named = await Promise.all(hosts.map(askMember));
  const answering = named.flatMap(({ member }) => (member === undefined ? [] : [member]));
  if (answering.length === 0) await locks.one.ping({ waitMs: LIMIT_MS });
  const led = answering.find(({ hasLeader }) => hasLeader);
  // Without a leader a cluster answers for no more than the state of each member.
  const findings = led === undefined ? memberFindings(named) : await clusterFindings(led, hosts, locks);
  return { store: 'etcd', version: (led ?? answering[0])?.version, findings };
}

/** @param led - a member that knows a leader: it can answer for the cluster */
async function clusterFindings(
  led: Member,
  hosts: readonly string[],
  locks: ExaminedStore['locks'],
): Promise<Finding[]> {
  const client = new Etcd3(clientOptions({ hosts: led.host }));
  try {
    const { members: listed } = await client.cluster.memberList({}, limited());
    const all = [...new Set([...hosts, ...listed.flatMap(({ clientURLs }) => clientURLs)])];
    const asked = await Promise.all(all.map(askMember));
    const members = asked.flatMap(({ member }) => (member === undefined ? [] : [member]));
    const alarms = await alarmFindings(client);
    return [
      ...memberFindings(asked),
      ...alarms,
      ...found(
        listed.length === 1 && singleFinding(),
        ...versionsOf(members).map((version) => oldVersion('etcd', 'etcd', version)),
        ...members.map(quotaFinding),
        ...(await Promise.all(members.map(({ host }) => clockFinding(host)))),
      ),
      // A store without space has none for a lock, so no trial is made.
      ...(alarms.length > 0
        ? []
        : [...(await electionFindings(client)), ...(await trialFindings('etcd', locks, READING))]),
    ];
  } finally {
    client.close();
  }
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

async function askMember(host: string): Promise<AskedMember> {
  const client = new Etcd3(clientOptions({ hosts: host }));
  try {
    const { version, dbSize, leader } = await client.maintenance.status(limited());
    const hasLeader = leader !== NO_LEADER;
    return { host, member: { host, version, bytes: Number(dbSize), quota: await quotaOf(host), hasLeader } };
  } catch {
    return { host, member: undefined };
  } finally {
    client.close();
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
async function electionFindings(client: Etcd3): Promise<Finding[]> {
  let shortest: number;
  try {
    const { ID, TTL } = await client.leaseClient.leaseGrant({ TTL: 1 }, limited());
    await client.leaseClient.leaseRevoke({ ID }, limited());
    shortest = Number(TTL);
  } catch (failure) {
    // The database is full, and no write has raised the alarm yet: the trial finds that too.
    if (isFull(failure as Error)) return [];
    throw failure;
  }
  if (shortest <= WAITER_SECONDS) return [];
  return [
    warning(
      'etcd/election-timeout',
      `the shortest lease is ${shortest} s: a dead waiter delays the next one for so long, and shorter ttls are raised to it`,
      'lower --election-timeout (and --heartbeat-interval) where the network between the members allows it',
    ),
  ];
}
