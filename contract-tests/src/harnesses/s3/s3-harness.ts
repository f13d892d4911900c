import { CreateBucketCommand, DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { Harness } from '@locks/core/conformance';
import { s3Backend } from '@locks/s3';
import { at, serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith } from '../connections/shared-clients.ts';

/** Any name: a server of the user's own may have it, and then keeps it. */
export const BUCKET = 'locks-conformance';
/** The suite kills processes that wait: the default of ten seconds would make its cases long. */
const OPTIONS = { bucket: BUCKET, waiterTtlMs: 3_000 } as const;

interface StartedS3 {
  readonly url: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  stop(): Promise<void>;
}

interface S3HarnessOptions {
  readonly module: string;
  readonly name: string;
  readonly topology?: string;
  /** The variable with the URL of a server of the user's own, with its credentials: `http://key:secret@127.0.0.1:9000`. */
  readonly urlVariable: string;
  /** Of the server, for the matrix. */
  readonly server: string;
  start(): Promise<StartedS3>;
}

/** A harness on an implementation of S3: its address is a URL with the credentials. */
export function s3Harness({ start, server, urlVariable, ...own }: S3HarnessOptions): Harness {
  /** All backends of a process share one, as those of an application would. */
  let client: S3Client | undefined;
  const shared = (url: string): S3Client => (client ??= openS3(url));
  const end = async (): Promise<void> => {
    client?.destroy();
    client = undefined;
  };
  return servedHarness<string>({
    ...own,
    variable: `LOCKS_CONFORMANCE_${urlVariable}`,
    async start() {
      const { startProxy } = await import('@locks/test-servers');
      const given = process.env[urlVariable];
      const started = given ? undefined : await start();
      const direct = given || withCredentials(started as StartedS3);
      const proxy = await startProxy(serverIn(direct), { protocol: 'raw' });
      return {
        ...{ direct, proxied: at(direct, proxy), proxies: [proxy] },
        async stop() {
          await proxy.stop();
          await started?.stop();
        },
      };
    },
    async prepare({ direct, proxied = direct }) {
      await shared(proxied)
        .send(new CreateBucketCommand({ Bucket: BUCKET }))
        .catch((error: unknown) => {
          if (!['BucketAlreadyOwnedByYou', 'BucketAlreadyExists'].includes((error as Error).name))
            throw error;
        });
      return server;
    },
    hasPrefix: true,
    createBackend(url, served, prefix) {
      const backend = s3Backend(shared(url), { ...OPTIONS, ...(prefix !== undefined && { prefix }) });
      // A backend never destroys a client that it was given. A child process has no teardown: there the client ends with its backend.
      return served === undefined ? closedWith(backend, end) : backend;
    },
    end,
    faults: (direct) => ({
      wire: {
        servers: () => [serverIn(direct())],
        createBackend([address]) {
          const one = openS3(at(direct(), address));
          return closedWith(s3Backend(one, { ...OPTIONS }), async () => one.destroy());
        },
      },
      async evict(resource) {
        const one = openS3(direct());
        const Key = keyOf(resource);
        await one.send(new DeleteObjectCommand({ Bucket: BUCKET, Key })).finally(() => one.destroy());
      },
      async corrupt(resource) {
        const one = openS3(direct());
        const object = { Bucket: BUCKET, Key: keyOf(resource), Body: 'of another program' };
        await one.send(new PutObjectCommand(object)).finally(() => one.destroy());
      },
    }),
    timing: { slackMs: 1_500, idleGapMs: 4_200 },
  });
}

function keyOf(resource: string): string {
  const escaped = [...Buffer.from(`lock/${resource}`)].map((byte) => {
    const char = String.fromCharCode(byte);
    return /[\w.-]/.test(char) ? char : `=${byte.toString(16).padStart(2, '0')}`;
  });
  return `locks/${escaped.join('')}`;
}

function withCredentials({ url, credentials }: StartedS3): string {
  const { accessKeyId, secretAccessKey } = credentials ?? { accessKeyId: 'local', secretAccessKey: 'local' };
  return url.replace('http://', `http://${accessKeyId}:${secretAccessKey}@`);
}

export function openS3(url: string): S3Client {
  const { username, password, origin } = new URL(url);
  return new S3Client({
    endpoint: origin,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: username, secretAccessKey: password },
  });
}
