import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { createLocks } from '@locks/core';
import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zookeeperBackend } from '../src/index.ts';

const NO_NODE = -101;
/** A code that node-zookeeper-client does not know. */
const UNKNOWN_SESSION = -12;
/** The size of a reply without a body: its length, xid, zxid and error code. */
const BARE_REPLY = 20;

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

test('an error code that the library does not know ends the connection, and not the process', async () => {
  let changed = 0;
  const proxy = createServer((client) => {
    const onward = connect(server.port, server.host);
    client.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    onward.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.pipe(onward);
    onward.on('data', (chunk: Buffer) => {
      // The answer to the first probe says that there is no such node.
      if (changed === 0 && chunk.length === BARE_REPLY && chunk.readInt32BE(16) === NO_NODE) {
        chunk.writeInt32BE(UNKNOWN_SESSION, 16);
        changed += 1;
      }
      client.write(chunk);
    });
  });
  proxy.listen(0, server.host);
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  const locks = createLocks(zookeeperBackend(`${server.host}:${port}`, { sessionTimeoutMs: 3_000 }));
  await (await locks.lock('survives').acquire({ waitMs: 10_000 })).release();
  await expect.poll(() => changed, { timeout: 5_000 }).toBe(1);
  const lease = await locks.lock('survives').acquire({ waitMs: 10_000 });
  lease.assertValid();
  await lease.release();
  await locks.close();
  proxy.close();
});
