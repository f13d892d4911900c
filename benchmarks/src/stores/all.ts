import { contendersOf } from '../contenders/all.ts';
import type { Contender } from '../contenders/contender.ts';
import { etcdStore } from './etcd.ts';
import { localStore } from './local.ts';
import { mysqlStore } from './mysql.ts';
import { postgresStore } from './postgres.ts';
import { redisStore } from './redis.ts';
import type { Store } from './store.ts';
import { zookeeperStore } from './zookeeper.ts';

/** Every store, in the order of the tables. */
export const allStores: readonly Store[] = [
  localStore,
  redisStore,
  postgresStore,
  mysqlStore,
  zookeeperStore,
  etcdStore,
];

/** Our backends on every store. */
export async function oursOnAllStores(): Promise<Contender[]> {
  const contenders = await Promise.all(allStores.map(({ id }) => contendersOf(id)));
  return contenders.flat().filter(({ kind }) => kind === 'ours');
}
