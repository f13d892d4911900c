import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { freePort } from '../free-port.ts';
import { ManagedServer, type ServerLocation, startServer } from '../managed-server.ts';
import { assertFetched } from './assert-fetched.ts';

/** Of `weed mini`; each of them has a second port, 10 000 above. */
const PARTS = ['master', 'volume', 'filer', 'admin'] as const;

/** Those of an administrator of every private SeaweedFS. */
export const seaweedfsCredentials = { accessKeyId: 'locks', secretAccessKey: 'locks-secret' } as const;

/** Starts a SeaweedFS with its S3 gateway, without buckets, on free ports of 127.0.0.1. */
export async function startSeaweedfs(): Promise<SeaweedfsServer> {
  assertFetched('seaweedfs');
  const ports = await Promise.all(PARTS.map(() => freePort({ withClusterBus: true })));
  return await startServer(
    { label: 'seaweedfs', withClusterBus: true },
    (location) => new SeaweedfsServer(location, ports),
  );
}

/** A private SeaweedFS on loopback, all its parts in one process; the port is that of its S3 gateway. */
export class SeaweedfsServer extends ManagedServer {
  protected readonly title = 'SeaweedFS';
  protected override readonly data = ['data'];
  readonly #ports: readonly number[];

  constructor(location: ServerLocation, ports: readonly number[]) {
    super(location);
    this.#ports = ports;
  }

  /** The `endpoint` of a client; use it with `forcePathStyle: true`, and {@link credentials}. */
  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  readonly credentials = seaweedfsCredentials;

  protected override async prepare(): Promise<void> {
    const { accessKeyId: accessKey, secretAccessKey: secretKey } = this.credentials;
    const admin = { name: 'locks', credentials: [{ accessKey, secretKey }], actions: ['Admin'] };
    await writeFile(path.join(this.dir, 's3.json'), JSON.stringify({ identities: [admin] }));
  }

  protected override program() {
    const own = (name: string) => path.join(this.dir, name);
    return {
      command: path.join(fetchedFolder('seaweedfs'), 'bin/weed'),
      args: [
        '-logtostderr=true',
        'mini',
        `-dir=${own('data')}`,
        `-ip=${this.host}`,
        `-ip.bind=${this.host}`,
        ...PARTS.map((part, index) => `-${part}.port=${this.#ports[index]}`),
        `-s3.port=${this.port}`,
        `-s3.config=${own('s3.json')}`,
        `-s3.localSocket=${own('s3.sock')}`,
        `-filer.localSocket=${own('filer.sock')}`,
        '-s3.autoCreateBucket=false',
        '-s3.port.iceberg=0',
        '-s3.port.lance=0',
        '-admin.ui=false',
        '-webdav=false',
        '-master.telemetry=false',
      ],
    };
  }

  /** A request without credentials is refused, which is an answer. Writes fail until the master knows of a place for volumes. */
  protected override async isReady(): Promise<boolean> {
    if (!this.hasPrinted(`Start Seaweed S3 API Server`)) return false;
    const signal = AbortSignal.timeout(5_000);
    const { status } = await fetch(this.url, { signal });
    if (status !== 403 && status !== 200) return false;
    const master = await fetch(`http://${this.host}:${this.#ports[0]}/dir/status`, { signal });
    const { Topology } = (await master.json()) as { readonly Topology?: { readonly Max?: number } };
    return (Topology?.Max ?? 0) > 0;
  }
}
