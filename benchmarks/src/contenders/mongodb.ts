import { randomUUID } from 'node:crypto';
import type { MongoClient } from 'mongodb';
import { countConflict, countSent } from '../measure/client-counts.ts';
import { backend } from './clients.ts';
import { type Client, type Contender, foreign, ours, pauseBetweenPolls, TTL_MS } from './contender.ts';

const store = 'mongodb';
const DATABASE = 'bench';
const DUPLICATE_KEY = 11_000;

/** What commands answer that write. */
interface Written {
  readonly n?: number;
  readonly value?: unknown;
  readonly writeErrors?: readonly unknown[];
}

const client: Client<MongoClient> = {
  packages: ['mongodb'],
  async connect(url) {
    const { MongoClient: Driver } = await import('mongodb');
    const opened = new Driver(url, { monitorCommands: true });
    opened.on('commandStarted', ({ commandName }) => countSent(commandName));
    opened.on('commandSucceeded', ({ commandName, reply }) => {
      if (isConflict(commandName, reply as Written)) countConflict();
    });
    opened.on('commandFailed', ({ failure }) => {
      if ((failure as { code?: unknown }).code === DUPLICATE_KEY) countConflict();
    });
    await opened.connect();
    const ping = () => opened.db(DATABASE).command({ ping: 1 });
    return { client: opened, ping, close: () => opened.close() };
  },
};

/** No document had the version, or another one has the key. */
function isConflict(command: string, { n, value, writeErrors }: Written): boolean {
  if (command === 'findAndModify') return value === null;
  return ['insert', 'update', 'delete'].includes(command) && (n === 0 || writeErrors !== undefined);
}

/** A document with the name as its key, and its deletion; an index of TTL ends those of dead holders. No token, and no queue. */
const rawInsert = foreign({ store, name: 'raw insert', kind: 'floor' }, client, async (mongodb) => {
  const locks = mongodb
    .db(DATABASE)
    .collection<{ _id: string; owner: string; expiresAt: Date }>('raw', { writeConcern: { w: 'majority' } });
  await locks.createIndex({ expiresAt: 1 }, { expireAfterSeconds: 0 });
  return async (_id) => {
    const owner = randomUUID();
    const take = async (): Promise<boolean> => {
      try {
        await locks.insertOne({ _id, owner, expiresAt: new Date(Date.now() + TTL_MS) });
        return true;
      } catch (error) {
        if ((error as { code?: unknown }).code === DUPLICATE_KEY) return false;
        throw error;
      }
    };
    while (!(await take())) await pauseBetweenPolls();
    return () => locks.deleteOne({ _id, owner });
  };
});

export const mongodbContenders: readonly Contender[] = [
  rawInsert,
  ours(
    { store, name: '@locks/mongodb', floor: rawInsert.name },
    backend('@locks/mongodb', client, async (mongodb) =>
      (await import('@locks/mongodb')).mongodbBackend(mongodb.db(DATABASE).collection('locks')),
    ),
  ),
];
