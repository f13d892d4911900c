import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findServer, howToInstall, searchPath } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';

export interface MongoOptions {
  /**
   * Keeps a log of the writes, so that there are change streams. Those tell of inserts alone, and answer at once where they have nothing.
   * @defaultValue false
   */
  readonly changeStreams?: boolean;
}

/** The folder of the jars, beside the programs. */
const JARS = 'mongo-java-server';
const PROGRAM = fileURLToPath(new URL('./DurableMongo.java', import.meta.url));
const JAVA_FLAGS = ['-Xms32m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

/** Starts a mongo-java-server on a free port of 127.0.0.1: it speaks the protocol of MongoDB, and is no MongoDB. */
export async function startMongo(options: MongoOptions = {}): Promise<MongoServer> {
  return await startServer({ label: 'mongo' }, (location) => new MongoServer(location, options));
}

/** A private mongo-java-server on loopback. What it has acknowledged is in its file. */
export class MongoServer extends ManagedServer {
  protected readonly title = 'mongo-java-server';
  protected override readonly data = ['data.mv'];
  readonly #options: MongoOptions;

  constructor(location: ServerLocation, options: MongoOptions) {
    super(location);
    this.#options = options;
  }

  get url(): string {
    return `mongodb://${this.host}:${this.port}/?directConnection=true`;
  }

  protected override program() {
    const own = [String(this.port), path.join(this.dir, 'data.mv')];
    const { changeStreams = false } = this.#options;
    const args = [...JAVA_FLAGS, '-cp', path.join(jars(), '*'), PROGRAM, ...own];
    return { command: findServer('java'), args: [...args, ...(changeStreams ? ['oplog'] : [])] };
  }

  /** The server prints its pid once the port is its own. */
  protected override async isReady(): Promise<boolean> {
    return this.logTail(50).includes(`ready ${this.pid}`);
  }
}

function jars(): string {
  const found = searchPath()
    .map((directory) => path.join(directory, JARS))
    .find((directory) => existsSync(directory));
  if (found === undefined)
    throw new Error(`The jars of mongo-java-server were not found. ${howToInstall('mongo')}`);
  return found;
}
