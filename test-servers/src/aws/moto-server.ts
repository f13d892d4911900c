import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { fetchedFolder } from '../fetched-kinds.mjs';
import { ManagedServer, startServer } from '../managed-server.ts';
import { assertFetched } from './assert-fetched.ts';

const SCRIPT = fileURLToPath(new URL('moto_one_at_a_time.py', import.meta.url));

/** Starts a moto, which answers as S3, without buckets, in memory, on a free port of 127.0.0.1. A restart comes back empty. */
export async function startMoto(): Promise<MotoServer> {
  assertFetched('s3');
  return await startServer({ label: 'moto' }, (location) => new MotoServer(location));
}

/** A private moto on loopback. It takes any credentials. */
export class MotoServer extends ManagedServer {
  protected readonly title = 'moto';

  /** The `endpoint` of a client; use it with `forcePathStyle: true`. */
  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  protected override program() {
    return {
      command: path.join(fetchedFolder('s3'), 'bin/python'),
      args: [SCRIPT, '-H', this.host, '-p', `${this.port}`],
      env: { ...process.env, PYTHONUNBUFFERED: '1' },
    };
  }

  protected override async isReady(): Promise<boolean> {
    if (!this.hasPrinted(`Running on ${this.url}`)) return false;
    const { ok } = await fetch(this.url, { signal: AbortSignal.timeout(5_000) });
    return ok;
  }
}
