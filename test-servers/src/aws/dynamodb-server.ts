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

  /** Its first requests take a second: a start that answers one has loaded what they need. */
  protected override async isReady(): Promise<boolean> {
    if (!this.hasPrinted('listening')) return false;
    const Key = { key: { S: 'none' } };
    const [tables, item] = [
      await this.#ask('ListTables', {}),
      await this.#ask('GetItem', { TableName: 'none', Key }),
    ];
    return tables === 200 && item === 400;
  }

  /** The status of the answer to a request, whose signature DynamoDB Local does not look at. */
  async #ask(operation: string, body: object): Promise<number> {
    const { status } = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `DynamoDB_20120810.${operation}`,
        authorization:
          'AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0',
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    return status;
  }
}
