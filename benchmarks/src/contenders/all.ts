import type { Contender, StoreId } from './contender.ts';

type Contenders = readonly Contender[];

/** Each module is loaded on request: a client process has the clients of one store only. */
const load: Readonly<Record<StoreId, () => Promise<Contenders>>> = {
  redis: async () => (await import('./redis.ts')).redisContenders,
  kinds: async () => (await import('./kinds.ts')).kindsContenders,
  postgres: async () => (await import('./postgres.ts')).postgresContenders,
  mysql: async () => (await import('./mysql.ts')).mysqlContenders,
  zookeeper: async () => (await import('./zookeeper.ts')).zookeeperContenders,
  etcd: async () => (await import('./etcd.ts')).etcdContenders,
  dynamodb: async () => (await import('./dynamodb.ts')).dynamodbContenders,
  s3: async () => (await import('./s3.ts')).s3Contenders,
  nats: async () => (await import('./nats.ts')).natsContenders,
  mongodb: async () => (await import('./mongodb.ts')).mongodbContenders,
  cohorts: async () => (await import('./cohorts.ts')).cohortContenders,
  local: async () => (await import('./local.ts')).localContenders,
  files: async () => (await import('./files.ts')).fileContenders,
};

export async function contendersOf(store: StoreId): Promise<Contenders> {
  return await load[store]();
}

export async function contenderNamed(store: StoreId, name: string): Promise<Contender> {
  const all = await contendersOf(store);
  const found = all.find((contender) => contender.name === name);
  if (found !== undefined) return found;
  const names = all.map((contender) => contender.name).join(', ');
  throw new Error(`There is no contender ${JSON.stringify(name)}. Use ${names}.`);
}
