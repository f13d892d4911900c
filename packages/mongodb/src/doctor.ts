import { type Diagnosis, type Finding, found, oldVersion, unknown, warning } from '@locks/core/doctor';
import type { Collection, Db, Document } from 'mongodb';
import { collectionFindings } from './collection-findings.ts';
import { codeOf } from './mongodb-error.ts';
import { checkOptions, type MongodbBackendOptions } from './options.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

/** The code of the server for a command that this user may not send. */
const UNAUTHORIZED = 13;

// setup: import { examineMongodb } from '@locks/mongodb/doctor'; import { MongoClient } from 'mongodb';
/**
 * Examines the collection of the locks and its servers: whether they are a replica set, and whether the collection compares names byte by
 * byte. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the driver as they are
 * @example
 * ```ts
 * const client = new MongoClient('mongodb://10.0.0.1:27017');
 * const { findings } = await examineMongodb(client.db('app').collection('locks'));
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineMongodb(
  collection: Collection,
  options?: MongodbBackendOptions,
): Promise<Diagnosis> {
  checkOptions(collection, options, 'examineMongodb()');
  const db = databaseOf(collection);
  const server = await db.command({ hello: 1 }).catch(() => db.command({ isMaster: 1 }));
  const { version } = await db.command({ buildInfo: 1 });
  const seen = await db
    .listCollections({ name: collection.collectionName })
    .toArray()
    .catch((error: unknown) => {
      if (codeOf(error) !== UNAUTHORIZED) throw error;
      return undefined;
    });
  const findings = found(
    oldVersion('mongodb', String(version), SERVER_VERSIONS.mongodb),
    !isReplicated(server) && standaloneFinding(),
    ...(seen === undefined ? [deniedFinding()] : seen.flatMap(collectionFindings)),
  );
  return { store: 'mongodb', version: String(version), findings, isUnused: seen?.length === 0 };
}

/** The first drivers of 6 keep the database to themselves. */
function databaseOf(collection: Collection): Db {
  const { db, s } = collection as unknown as { readonly db?: Db; readonly s?: { readonly db: Db } };
  return db ?? (s as { readonly db: Db }).db;
}

/** A router of a sharded cluster says `isdbgrid`. */
function isReplicated({ setName, msg }: Document): boolean {
  return setName !== undefined || msg === 'isdbgrid';
}

function standaloneFinding(): Finding {
  return warning(
    'mongodb/standalone',
    'the server is no member of a replica set: nothing is pushed, so that waiters poll, and its disk is the only copy',
    'run a replica set of three members; one member alone has change streams too',
  );
}

function deniedFinding(): Finding {
  return unknown(
    'mongodb/describe',
    'this user may not see how the collection is set up',
    'allow listCollections to the user of the doctor; locks need it not',
  );
}
