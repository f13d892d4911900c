import { randomUUID } from 'node:crypto';
import type { Etcd3, IRangeRequest } from 'etcd3';
import { backends, etcd3 } from './clients.ts';
import { type Contender, foreign, ours, TTL_MS } from './contender.ts';

const store = 'etcd';
const TTL_SECONDS = TTL_MS / 1000;

/** A lease of its own for each lock, so that each ends by itself: grant, transaction, revoke. */
const rawLeaseEach = foreign(
  { store, name: 'raw, a lease each', kind: 'floor' },
  etcd3,
  (client) => async (name) => {
    const { ID } = await client.leaseClient.leaseGrant({ TTL: TTL_SECONDS });
    await enter(client, name, ID);
    // The key is deleted with its lease.
    return () => client.leaseClient.leaseRevoke({ ID });
  },
);

/** One lease for all locks of the process, as the `concurrency` package of etcd has it: a transaction and a delete. */
const rawOneLease = foreign({ store, name: 'raw, one lease', kind: 'floor' }, etcd3, async (client) => {
  // The lease is kept alive: all locks are lost together.
  const lease = await client.lease(60).grant();
  return async (name) => {
    const key = await enter(client, name, lease);
    return () => client.kv.deleteRange({ key });
  };
});

export const etcdContenders: readonly Contender[] = [
  rawLeaseEach,
  rawOneLease,
  // Its locks use the leases of earlier locks again.
  ours({ store, name: '@locks/etcd', floor: rawOneLease.name }, backends.etcd),
];

/** The recipe of etcd's `concurrency.Mutex` by hand: waits for the key that was created just before one's own. */
async function enter(client: Etcd3, name: string, lease: string): Promise<Buffer> {
  const prefix = `raw/${name}/`;
  const key = Buffer.from(`${prefix}${randomUUID()}`);
  const all = { key: Buffer.from(prefix), range_end: Buffer.from(`raw/${name}0`) };
  const { header, responses } = await client.kv.txn({
    compare: [],
    success: [
      { request_put: { key, lease } },
      { request_range: { ...all, sort_order: 'Ascend', sort_target: 'Create', limit: 1 } },
    ],
    failure: [],
  });
  const first = responses[1]?.response_range?.kvs[0]?.key;
  const entered = Number(header.revision);
  if (first !== undefined && key.equals(first)) return key;
  for (;;) {
    const { before, revision } = await lastBefore(client, all, entered);
    if (before === undefined) return key;
    await untilDeleted(client, before, revision);
  }
}

async function lastBefore(
  client: Etcd3,
  all: Pick<IRangeRequest, 'key' | 'range_end'>,
  entered: number,
): Promise<{ readonly before: Buffer | undefined; readonly revision: number }> {
  const { kvs, header } = await client.kv.range({
    ...all,
    max_create_revision: entered - 1,
    sort_order: 'Descend',
    sort_target: 'Create',
    limit: 1,
  });
  return { before: kvs[0]?.key, revision: Number(header.revision) };
}

async function untilDeleted(client: Etcd3, key: Buffer, revision: number): Promise<void> {
  const watcher = client.watch().key(key).startRevision(String(revision)).watcher();
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.once('delete', () => resolve());
      watcher.once('error', reject);
    });
  } finally {
    await watcher.cancel();
  }
}
