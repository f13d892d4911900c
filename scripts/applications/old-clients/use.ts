// The types of the packages beside those of the oldest clients.
import { createLocks } from '@locks/core';
import { etcdBackend } from '@locks/etcd';
import { mysqlBackend } from '@locks/mysql';
import { postgresAdvisoryBackend, postgresLeaseBackend } from '@locks/postgres';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { zookeeperBackend } from '@locks/zookeeper';
import { Etcd3 } from 'etcd3';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { createClient } from 'redis';

const url = 'redis://127.0.0.1';

export const managers = [
  createLocks(etcdBackend(new Etcd3({ hosts: '127.0.0.1:2379' }))),
  createLocks(mysqlBackend(createPool('mysql://127.0.0.1/shop'))),
  createLocks(postgresLeaseBackend(new pg.Pool())),
  createLocks(postgresAdvisoryBackend(new pg.Pool())),
  createLocks(ioredisBackend(new Redis(url))),
  createLocks(ioredisBackend(new Cluster([url]))),
  createLocks(nodeRedisBackend(createClient({ url }))),
  createLocks(zookeeperBackend('127.0.0.1:2181')),
];
