import path from 'node:path';
import { assertFetched } from '../aws/assert-fetched.ts';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';

export interface MongodbOptions {
  /**
   * Keeps a log of the writes, so that there are change streams. Those tell of inserts alone, and answer at once where they have nothing.
   * @defaultValue false
   */
  readonly changeStreams?: boolean;
}

const JAVA_FLAGS = ['-Xms32m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

/** Starts a mongo-java-server on a free port of 127.0.0.1: it speaks the protocol of MongoDB, and is no MongoDB. */
export async function startMongodb(options: MongodbOptions = {}): Promise<MongodbServer> {
  assertFetched('mongodb');
  return await startServer({ label: 'mongodb' }, (location) => new MongodbServer(location, options));
}

/** A private mongo-java-server on loopback. What it has acknowledged is in its file. */
export class MongodbServer extends ManagedServer {
  protected readonly title = 'mongo-java-server';
  protected override readonly data = ['data.mv'];
  readonly #options: MongodbOptions;

  constructor(location: ServerLocation, options: MongodbOptions) {
    super(location);
    this.#options = options;
  }

  get url(): string {
    return `mongodb://${this.host}:${this.port}/?directConnection=true`;
  }

  protected override program() {
    const folder = fetchedFolder('mongodb');
    const classPath = [path.join(folder, 'classes'), path.join(folder, 'jars', '*')].join(path.delimiter);
    const own = [String(this.port), path.join(this.dir, 'data.mv')];
    const { changeStreams = false } = this.#options;
    return {
      command: findServer('java'),
      args: [...JAVA_FLAGS, '-cp', classPath, 'DurableMongo', ...own, ...(changeStreams ? ['oplog'] : [])],
    };
  }

  /** The server prints its pid once the port is its own. */
  protected override async isReady(): Promise<boolean> {
    return this.hasPrinted(`ready ${this.pid}`);
  }
}
