import { mongodbBackend, mongodbSlots } from '@locks/mongodb';
import { examineMongodb } from '@locks/mongodb/doctor';
import { MongoClient } from 'mongodb';
import { decoded, type StoreUrl } from '../store-url.ts';
import { UsageError } from '../usage-error.ts';
import type { OpenBackend } from './open-backend.ts';

const DEFAULT_COLLECTION = 'locks';
const SELECT_MS = 5_000;
const FORM = 'mongodb://HOST:PORT,HOST:PORT/DATABASE?collection=locks';

/** All but `collection` is the connection string of the driver. */
export async function openMongodb({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const [, given] = /[?&]collection=([^&]*)/.exec(text) ?? [];
  // The parameter is taken out; the separator that is left serves the next one.
  const uri = text.replace(/([?&])collection=[^&]*&?/, '$1').replace(/[?&]$/, '');
  if (!/^[^:]+:\/\/[^/?]+\/[^?]/.test(uri))
    throw new UsageError(`--url or LOCKS_URL: the database is missing: ${FORM}`);
  const client = clientOf(uri);
  const collection = client.db().collection(given === undefined ? DEFAULT_COLLECTION : decoded(given));
  const options = prefix === undefined ? {} : { prefix };
  return {
    backend: mongodbBackend(collection, options),
    openSlots: async () => mongodbSlots(collection, options),
    closeClient: () => client.close(),
    examine: () => examineMongodb(collection, options),
  };
}

function clientOf(uri: string): MongoClient {
  try {
    return new MongoClient(uri, { serverSelectionTimeoutMS: SELECT_MS });
  } catch (error) {
    // What is wrong with the string itself; the driver repeats no password.
    throw new UsageError(`--url or LOCKS_URL: ${(error as Error).message}`);
  }
}
