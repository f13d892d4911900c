// A CommonJS module of an application: the packages are ESM only, and `require` loads them (Node >= 20.19).
const { createLocks, isLockError } = require('@locks/core');
const conformance = require('@locks/core/conformance');
const nodeTest = require('@locks/core/conformance/node-test');
const { memoryBackend } = require('@locks/memory');
const ioredis = require('@locks/redis-ioredis');
const nodeRedis = require('@locks/redis-node');
const glide = require('@locks/redis-glide');
const sqlite = require('@locks/sqlite');
const upstash = require('@locks/upstash');

async function main() {
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
}

void main();
