import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { assertFetched } from './assert-fetched.ts';

const JAVA_FLAGS = ['-Xms64m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

export interface DynamodbOptions {
  /**
   * Whether it keeps its tables in files; else a restart comes back empty.
   * @defaultValue false
   */
  readonly onDisk?: boolean;
}

/** Starts a DynamoDB Local without tables on a free port of 127.0.0.1. */
export async function startDynamodb({ onDisk = false }: DynamodbOptions = {}): Promise<DynamodbServer> {
  assertFetched('dynamodb');
  return await startServer({ label: 'dynamodb' }, (location) => new DynamodbServer(location, onDisk));
}

/** A private DynamoDB Local on loopback. It takes any credentials; all see the same tables. */
export class DynamodbServer extends ManagedServer {
  protected readonly title = 'DynamoDB Local';
  protected override readonly data = ['data'];
  readonly #onDisk: boolean;

  constructor(location: ServerLocation, onDisk: boolean) {
    super(location);
    this.#onDisk = onDisk;
  }

  /** The `endpoint` of a client. */
  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  protected override async prepare(): Promise<void> {
    await mkdir(this.#files, { recursive: true });
  }

  get #files(): string {
    return path.join(this.dir, 'data');
  }

  protected override program() {
    const folder = fetchedFolder('dynamodb');
    const jars = path.join(folder, 'jars');
    const classPath = [path.join(folder, 'classes'), path.join(jars, '*')].join(path.delimiter);
    const place = this.#onDisk ? ['-dbPath', this.#files] : ['-inMemory'];
    const options = [...place, '-sharedDb', '-disableTelemetry', '-port', `${this.port}`];
    return {
      command: findServer('java'),
      args: [
        ...JAVA_FLAGS,
        `-Djava.library.path=${jars}`,
        ...['-cp', classPath, 'DynamodbOnLoopback'],
        ...options,
      ],
    };
  }

  /** A request without credentials is refused, which is an answer. */
  protected override async isReady(): Promise<boolean> {
    if (!this.logTail(5).includes('listening')) return false;
    const { status } = await fetch(this.url, { signal: AbortSignal.timeout(5_000) });
    return status === 400;
  }
}
