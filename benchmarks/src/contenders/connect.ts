import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createClient } from 'redis';

/** An ioredis client that is connected. */
export async function connectIoredis(url: string): Promise<Redis> {
  const client = new Redis(url, { lazyConnect: true });
  await client.connect();
  return client;
}

/** A connected client of the previous major version, which some peers require. */
export async function connectIoredis5(url: string): Promise<Redis5> {
  const client = new Redis5(url, { lazyConnect: true });
  await client.connect();
  return client;
}

/** A node-redis client that is connected. */
export async function connectNodeRedis(url: string) {
  const client = createClient({ url });
  client.on('error', (error) => {
    throw error;
  });
  return await client.connect();
}
