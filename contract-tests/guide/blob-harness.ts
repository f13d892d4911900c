import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { defineHarness } from '@locks/core/conformance';
import { createRecordBackend } from '@locks/record-protocol';
import { BlobStore } from './blob-store.ts';

const host = '127.0.0.1';
const port = (): number => Number(process.env['BLOB_PORT']);
// The emulator of Azure, and the key that its documentation gives.
const AZURITE = fileURLToPath(import.meta.resolve('azurite/dist/src/blob/main.js'));
const OPTIONS = [
  '--blobHost',
  host,
  '--blobPort',
  '0',
  '--inMemoryPersistence',
  '--silent',
  '--disableTelemetry',
  '--skipApiVersionCheck',
];
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

function containerAt(at: number): ContainerClient {
  const credential = new StorageSharedKeyCredential('devstoreaccount1', KEY);
  const client = new BlobServiceClient(`http://${host}:${at}/devstoreaccount1`, credential);
  return client.getContainerClient('locks');
}

const backendAt = (at: number) => createRecordBackend(new BlobStore(containerAt(at)));

export default defineHarness({
  module: import.meta.url,
  createBackend: () => backendAt(port()),
  createBackendUnder: (prefix) => createRecordBackend(new BlobStore(containerAt(port())), { prefix }),
  async setup() {
    const azurite = spawn(process.execPath, [AZURITE, ...OPTIONS], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: azurite.stdout })) {
      const [, at] = /listens on \S+:(\d+)/.exec(line) ?? [];
      if (at === undefined) continue;
      await containerAt(Number(at)).create();
      const teardown = async () => {
        azurite.kill();
        await once(azurite, 'exit');
      };
      return { env: { BLOB_PORT: at }, teardown };
    }
    throw new Error('azurite did not start');
  },
  faults: {
    wire: {
      servers: () => [{ host, port: port() }],
      createBackend: ([proxy]) => backendAt(proxy?.port ?? 0),
    },
    async evict(resource) {
      const backend = backendAt(port());
      await backend.forceRelease?.(resource, undefined, { now: () => performance.now(), deadline: Infinity });
      await backend.close();
    },
    async corrupt(resource) {
      const limit = { timeoutMs: 5_000, signal: AbortSignal.timeout(5_000) };
      const write = {
        key: `locks/lock/${resource}`,
        value: Buffer.from('of another program'),
        ifVersion: undefined,
        isIdle: false,
      };
      await new BlobStore(containerAt(port())).write(write, limit);
    },
  },
  timing: { slackMs: 1_500, idleGapMs: 5_000 }, // a process that waits and was killed is passed over after 3 s
});
