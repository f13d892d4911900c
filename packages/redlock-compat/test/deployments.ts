import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';

/** Independent Redis servers, with a client each. */
export class Deployment implements AsyncDisposable {
  readonly servers: readonly RedisServer[];
  readonly clients: readonly Redis[];

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
    this.clients = servers.map((server) => new Redis(server.url));
    // A server that is away is what some tests are about.
    for (const client of this.clients) client.on('error', () => {});
  }

  static async start(count: number): Promise<Deployment> {
    return new Deployment(await Promise.all(Array.from({ length: count }, () => startRedis())));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.disconnect();
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

/** What a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not reject');
}
