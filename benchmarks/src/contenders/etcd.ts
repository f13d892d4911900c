import { createLocks } from '@locks/core';
import { etcdBackend } from '@locks/etcd';
import { Etcd3 } from 'etcd3';
import { type Contender, TTL_MS } from './contender.ts';
import { oursContender } from './locks.ts';
import { rawEtcd, rawEtcdOneLease } from './raw-etcd.ts';

/** Its locks use the leases of earlier locks again. */
const locksEtcd: Contender = oursContender({
  store: 'etcd',
  name: '@locks/etcd',
  floor: rawEtcdOneLease.name,
  packages: ['@locks/etcd', 'etcd3'],
  async openLocks(url, ttlMs = TTL_MS) {
    const client = new Etcd3({ hosts: url });
    const locks = createLocks(etcdBackend(client), { ttlMs });
    return {
      locks,
      ping: async () => client.get('ping'),
      close: async () => {
        await locks.close();
        client.close();
      },
    };
  },
});

export const etcdContenders: readonly Contender[] = [rawEtcd, rawEtcdOneLease, locksEtcd];
