import { createLocks } from '@locks/core';
import { etcdBackend } from '@locks/etcd';

export interface WorkerSetup {
  readonly hosts: string | string[];
  readonly name: string;
  readonly ttlMs: number;
}

const { hosts, name, ttlMs } = JSON.parse(process.argv[2] as string) as WorkerSetup;
const locks = createLocks(etcdBackend({ hosts }), { ttlMs });
const lease = await locks.lock(name).acquire({ waitMs: 60_000 });
process.send?.({ token: lease.fencingToken.toString() });
setInterval(() => undefined, 1_000);
