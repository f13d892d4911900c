import { mongodbBackend } from '@locks/mongodb';
import { type Collection, MongoClient } from 'mongodb';
import { at, serverIn } from './connections/server-url.ts';
import { servedHarness } from './connections/served-harness.ts';
import { closedWith } from './connections/shared-clients.ts';

const CONNECTIONS = 24;
const WARM_ROUNDS = 40;

/** All backends of a process share one, as those of an application would. */
let client: MongoClient | undefined;

/** The server that `MONGODB_URL` names, else a mongo-java-server. */
export default servedHarness<string>({
  module: import.meta.url,
  name: 'mongodb',
  variable: 'LOCKS_CONFORMANCE_MONGODB',
  async start() {
    const { startMongodb, startProxy } = await import('@locks/test-servers');
    const given = process.env['MONGODB_URL'];
    const server = given ? undefined : await startMongodb();
    const direct = given || (server?.url as string);
    const proxy = await startProxy(serverIn(direct), { protocol: 'raw' });
    return {
      ...{ direct, proxied: at(direct, proxy), proxies: [proxy] },
      async stop() {
        await proxy.stop();
        await server?.stop();
      },
    };
  },
  async prepare({ direct, proxied = direct }) {
    client = open(proxied);
    // A Java server is slow until it has done a thing many times, and opens its connections one by one.
    const warm = client.db('warm').collection<{ _id: number; count: number }>('warm');
    for (let round = 0; round < WARM_ROUNDS; round += 1) {
      const ids = Array.from({ length: CONNECTIONS }, (_, id) => id);
      await Promise.all(
        ids.map((_id) => warm.findOneAndUpdate({ _id }, { $inc: { count: 1 } }, { upsert: true })),
      );
      await Promise.all(ids.map((_id) => warm.aggregate([{ $match: { _id } }]).toArray()));
    }
    const { version } = await client.db().admin().buildInfo();
    return process.env['MONGODB_URL'] ? `MongoDB ${version}` : `mongo-java-server, as MongoDB ${version}`;
  },
  hasPrefix: true,
  createBackend(url, served, prefix) {
    const collection = locksOf((client ??= open(url)));
    const backend = mongodbBackend(collection, { ...(prefix !== undefined && { prefix }) });
    // A backend never closes a client that it was given. A child process has no teardown: there it is closed with its backend.
    return served === undefined ? closedWith(backend, end) : backend;
  },
  end,
  faults: (direct) => ({
    wire: {
      servers: () => [serverIn(direct())],
      createBackend([address]) {
        const own = open(at(direct(), address));
        return closedWith(mongodbBackend(locksOf(own)), () => own.close());
      },
    },
    async onOwnClient() {
      const own = open(direct());
      return { backend: mongodbBackend(locksOf(own)), closeClient: () => own.close() };
    },
    async evict(resource) {
      const admin = new MongoClient(direct());
      try {
        await locksOf(admin).deleteOne({ _id: `locks/lock/${resource}` as never });
      } finally {
        await admin.close();
      }
    },
    async corrupt(resource) {
      const admin = new MongoClient(direct());
      try {
        await locksOf(admin).insertOne({ _id: `locks/lock/${resource}` as never, of: 'another program' });
      } finally {
        await admin.close();
      }
    },
  }),
  timing: { slackMs: 1_000, idleGapMs: 4_200 },
});

function locksOf(of: MongoClient): Collection {
  return of.db('locks').collection('locks');
}

function open(url: string): MongoClient {
  return new MongoClient(url, { serverSelectionTimeoutMS: 2_000, maxPoolSize: CONNECTIONS });
}

async function end(): Promise<void> {
  const ended = client;
  client = undefined;
  await ended?.close();
}
