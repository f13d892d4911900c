// An ECMAScript module of an application: prints what it saw, for scripts/checks/steps/consumers.ts to judge.
import { createLocks, isLockError } from '@locks/core';
import * as conformance from '@locks/core/conformance';
import * as nodeTest from '@locks/core/conformance/node-test';
import { memoryBackend } from '@locks/memory';
import * as glide from '@locks/redis-glide';
import * as ioredis from '@locks/redis-ioredis';
import * as nodeRedis from '@locks/redis-node';
import * as sqlite from '@locks/sqlite';
import * as upstash from '@locks/upstash';

const locks = createLocks(memoryBackend());
const lock = locks.lock('sku:42');
const lease = await lock.acquire();
const second = await lock.tryAcquire();
await lease.release();
const value = await lock.run(async (inner) => inner.fencingToken > lease.fencingToken);
const held = await lock.acquire();
const timeout = await lock.acquire({ waitMs: 10 }).catch((error) => error);
await held.release();
await locks.close();

console.log(
  JSON.stringify({
    secondWasRefused: second === undefined,
    tokenRose: value,
    timeoutIsTold: isLockError(timeout, 'LOCK_TIMEOUT'),
    modulesWithoutExports: Object.entries({
      conformance,
      nodeTest,
      ioredis,
      nodeRedis,
      glide,
      sqlite,
      upstash,
    })
      .filter(([, module]) => Object.keys(module).length === 0)
      .map(([name]) => name),
  }),
);
