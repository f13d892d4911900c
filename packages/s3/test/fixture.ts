import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { CreateBucketCommand, S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { RecordVersion, RecordWrite, RequestLimit } from '@locks/record-protocol';
import { freePort, type MotoServer, startMoto, startSeaweedfs } from '@locks/test-servers';
import { checkOptions, type S3BackendOptions } from '../src/options.ts';
import { S3Store } from '../src/s3-store.ts';

interface Server {
  readonly url: string;
  readonly port: number;
  readonly host: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

let moto: Promise<MotoServer> | undefined;

/** The server of this file; vitest runs each file in a process of its own, and the server ends with it. */
export function server(): Promise<Server> {
  return (moto ??= startMoto());
}

let weed: Promise<Server> | undefined;

export function seaweedfs(): Promise<Server> {
  return (weed ??= startSeaweedfs());
}

export function openClient(
  { url, credentials }: Pick<Server, 'url' | 'credentials'>,
  more: S3ClientConfig = {},
) {
  return new S3Client({
    endpoint: url,
    region: 'eu-central-1',
    forcePathStyle: true,
    credentials: credentials ?? { accessKeyId: 'local', secretAccessKey: 'local' },
    ...more,
  });
}

export async function createBucket(client: S3Client): Promise<string> {
  const bucket = `locks-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return bucket;
}

/** A store on a bucket of its own. */
export async function openStore(options: Partial<S3BackendOptions> & { readonly client?: S3Client } = {}) {
  const { client = openClient(await server()), ...others } = options;
  const bucket = options.bucket ?? (await createBucket(client));
  return { client, bucket, store: new S3Store(checkOptions(client, { ...others, bucket })) };
}

export function limit(timeoutMs = 10_000): RequestLimit {
  return { timeoutMs, signal: AbortSignal.timeout(timeoutMs) };
}

export function write(key: string, value: string | undefined, ifVersion?: RecordVersion): RecordWrite {
  return { key, value: value === undefined ? undefined : Buffer.from(value), ifVersion, isIdle: false };
}

export function textOf(record: { readonly value: Uint8Array } | undefined): string | undefined {
  return record && Buffer.from(record.value).toString();
}

export const NASTY_KEYS = [
  'lock/a',
  'lock/a/b',
  'lock/a/',
  'lock/..',
  'lock/.',
  'lock/a\nb',
  'lock/a%2Fb',
  'lock/a=2fb',
  'lock/a+b',
  'lock/😀 é',
  'lock/*',
  'lock/>',
  'lock/ending.',
  'lock/Ending.',
  'lock/\u0000\u0001',
  `lock/${'é'.repeat(256)}`,
  `lock/${'/'.repeat(512)}`,
  `lock/${'/'.repeat(511)}`,
  `lock/${'a'.repeat(512)}`,
] as const;

/** What stands between a client and its server. @returns whether it has answered by itself */
type Intercept = (message: IncomingMessage, response: ServerResponse) => boolean;

export function refuse(response: ServerResponse, status: number, code: string): true {
  const xml = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>of the test</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml', connection: 'close' }).end(xml);
  return true;
}

/** A server that passes requests on to another one, after `intercept` has seen or changed them. */
export async function startFront(target: Server, intercept: Intercept) {
  const front = createServer((message, response) => {
    if (intercept(message, response)) return void message.resume();
    const { method, url: path, headers } = message;
    const onward = request({ host: target.host, port: target.port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    message.pipe(onward);
  });
  const port = await freePort();
  front.listen(port, '127.0.0.1');
  await once(front, 'listening');
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      front.closeAllConnections();
      front.close();
      await once(front, 'close');
    },
  };
}
