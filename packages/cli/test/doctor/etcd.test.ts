import { clientOptions } from '@locks/etcd';
import {
  type EtcdCluster,
  type EtcdClusterOptions,
  type EtcdServer,
  startEtcdCluster,
  waitUntil,
} from '@locks/test-servers';
import { Etcd3 } from 'etcd3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/exit-codes.ts';
import { locksHere } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

const started: EtcdCluster[] = [];

async function start(options: EtcdClusterOptions = {}): Promise<Started> {
  const cluster = await startEtcdCluster(options);
  started.push(cluster);
  const { members } = cluster;
  return { url: `etcd://${members.map(({ host, port }) => `${host}:${port}`).join(',')}`, members };
}

async function stopAll(): Promise<void> {
  await Promise.all(started.splice(0).map((cluster) => cluster.stop()));
}

interface Started {
  readonly url: string;
  readonly members: readonly EtcdServer[];
}

/** Writes until the database has this share of its quota, or is full. */
async function fill(server: EtcdServer, quota: number, share: number): Promise<void> {
  const client = new Etcd3(clientOptions({ hosts: server.url }));
  const size = async () => Number((await client.maintenance.status()).dbSize);
  try {
    for (let count = 0; (await size()) < share * quota; count += 1)
      await client.put(`filled/${count}`).value('x'.repeat(8_000));
  } finally {
    client.close();
  }
}

/** Writes until the smallest value is refused, and takes the alarm back that this raises. */
async function fillWithoutAlarm(server: EtcdServer): Promise<void> {
  const client = new Etcd3(clientOptions({ hosts: server.url }));
  const { memberId } = await server.status();
  const disarm = () => client.maintenance.alarm({ action: 2, alarm: 1, memberID: memberId });
  try {
    await disarm();
    for (let count = 0; ; count += 1) await client.put(`small/${count}`).value('x');
  } catch (error) {
    expect(String(error)).toContain('space exceeded');
    await disarm();
  } finally {
    client.close();
  }
}

// In this order: members are killed, and stay so.
describe('locks doctor on a cluster of etcd', () => {
  let url: string;
  let members: readonly EtcdServer[];
  beforeAll(async () => {
    ({ url, members } = await start());
  });
  afterAll(stopAll);

  it('finds nothing where nothing is wrong', async () => {
    const version = (await members[0]?.status())?.version;
    expect(await diagnose(url)).toEqual({ store: 'etcd', version, findings: [] });
  });

  it('etcd/member-down: a member does not answer, whether it was named or not', async () => {
    const [first, ...others] = members;
    // The leader would take the locks with it for the time of an election.
    const statuses = await Promise.all(others.map((member) => member.status()));
    const last = others[statuses.findIndex(({ memberId, leaderId }) => memberId !== leaderId)];
    await last?.kill();
    const { findings } = await diagnose(`etcd://127.0.0.1:${first?.port}`);
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'etcd/member-down',
        severity: 'warning',
        what: expect.stringContaining(`${last?.port}`) as string,
      }),
    ]);
  });

  it('etcd/no-leader: the majority of the members is down', async () => {
    const [first, ...others] = members as [EtcdServer, ...EtcdServer[]];
    for (const server of others) if (server.running) await server.kill();
    await waitUntil(async () => (await first.status()).leaderId === '0', { what: 'the end of the leader' });
    const expected = { 'etcd/no-leader': 'error', 'etcd/member-down': 'warning' };
    expect(severities(await diagnose(url))).toEqual(expected);
    const { findings } = await diagnose(`etcd://127.0.0.1:${first.port}`);
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'etcd/no-leader',
        what: expect.stringContaining(`${first.port}`) as string,
      }),
    ]);
  });
});

describe('locks doctor on one member of etcd', () => {
  let url: string;
  let members: readonly EtcdServer[];
  beforeAll(async () => {
    ({ url, members } = await start({ members: 1 }));
  });
  afterAll(stopAll);

  it('etcd/layout: another version laid out the locks', async () => {
    const client = new Etcd3(clientOptions({ hosts: members[0]?.url as string }));
    try {
      await client.put('locks///layout').value('2');
      expect(severities(await diagnose(url))).toMatchObject({ 'etcd/layout': 'error' });
    } finally {
      await client.delete().key('locks///layout');
      client.close();
    }
  });

  it('etcd/single-member: there is one member', async () => {
    expect(severities(await diagnose(url))).toEqual({ 'etcd/single-member': 'warning' });
  });

  it('etcd/clock: the clocks are apart', async () => {
    expect(severities(await diagnose(url, { clock: 'wrong' }))).toMatchObject({ 'etcd/clock': 'warning' });
  });

  it('etcd/corrupt: a member found the data damaged', async () => {
    const [server] = members as [EtcdServer];
    const client = new Etcd3(clientOptions({ hosts: server.url }));
    const { memberId } = await server.status();
    await client.maintenance.alarm({ action: 1, alarm: 2, memberID: memberId });
    client.close();
    await waitUntil(async () => 'etcd/corrupt' in severities(await diagnose(url)), { what: 'the alarm' });
  });

  it('says that no member answers where none does', async () => {
    await members[0]?.kill();
    const { code, stdout, stderr } = await locksHere(url, 'doctor', '--json');
    expect({ code, stdout }).toEqual({ code: EXIT.unavailable, stdout: '' });
    expect(stderr).toMatch(/^locks: .*(no answer|ECONNREFUSED|connect)/);
  });
});

describe('locks doctor on etcd with settings', () => {
  afterEach(stopAll);

  it('etcd/quota, etcd/no-space: the database is nearly full, and then full', async () => {
    // The size grows by all that was written since the last commit, up to some hundred kilobytes at once.
    const quota = 24_000_000;
    const { url, members } = await start({ members: 1, args: [`--quota-backend-bytes=${quota}`] });
    const [server] = members as [EtcdServer];
    await fill(server, quota, 0.85);
    expect(severities(await diagnose(url))).toMatchObject({ 'etcd/quota': 'warning' });
    await expect(fill(server, quota, 2)).rejects.toThrow(/space exceeded/);
    expect(severities(await diagnose(url))).toMatchObject({ 'etcd/no-space': 'error' });
    await fillWithoutAlarm(server);
    expect(severities(await diagnose(url))).toMatchObject({ 'etcd/no-space': 'error' });
  });

  it('etcd/election-timeout: leases are long', async () => {
    const { url } = await start({ members: 1, electionTimeoutMs: 5_000 });
    expect(severities(await diagnose(url))).toMatchObject({ 'etcd/election-timeout': 'warning' });
  });

  it('etcd/trial: a transaction may have one operation', async () => {
    const { url } = await start({ members: 1, args: ['--max-txn-ops=1'] });
    expect(severities(await diagnose(url))).toMatchObject({ 'etcd/trial': 'error' });
  });
});
