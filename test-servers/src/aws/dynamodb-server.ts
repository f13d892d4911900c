import path from 'node:path';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { findServer } from '../find-server.mjs';
import { ManagedServer, startServer } from '../managed-server.ts';
import { assertFetched } from './assert-fetched.ts';

const JAVA_FLAGS = ['-Xms64m', '-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

/** Starts a DynamoDB Local without tables, in memory, on a free port of 127.0.0.1. A restart comes back empty. */
export async function startDynamodb(): Promise<DynamodbServer> {
  assertFetched('dynamodb');
  return await startServer({ label: 'dynamodb' }, (location) => new DynamodbServer(location));
}

/** A private DynamoDB Local on loopback. It takes any credentials; all see the same tables. */
export class DynamodbServer extends ManagedServer {
  protected readonly title = 'DynamoDB Local';

  /** The `endpoint` of a client. */
  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  protected override program() {
    const folder = fetchedFolder('dynamodb');
    const jars = path.join(folder, 'jars');
    const classPath = [path.join(folder, 'classes'), path.join(jars, '*')].join(path.delimiter);
    const options = ['-inMemory', '-sharedDb', '-disableTelemetry', '-port', `${this.port}`];
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
