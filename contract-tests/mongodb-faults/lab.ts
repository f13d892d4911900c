import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { mongodbBackend } from '@locks/mongodb';
import { type MongodbServer, startMongodb } from '@locks/test-servers';
import { MongoClient, type MongoClientOptions } from 'mongodb';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

export interface LabOptions extends LockOptions {
  readonly client?: MongoClientOptions;
}

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(): Promise<MongodbServer> {
    return this.use(await startMongodb());
  }

  /** Locks on a client of their own, as one process has them. */
  locks({ host, port }: Address, { client: more, ...options }: LabOptions = {}): LockManager {
    const client = new MongoClient(`mongodb://${host}:${port}/?directConnection=true`, {
      serverSelectionTimeoutMS: 1_000,
      ...more,
    });
    this.defer(() => client.close());
    return this.use(createLocks(mongodbBackend(client.db('app').collection('locks')), options));
  }
}
