import { createRequire } from 'node:module';
import { type OnceRecord, readSlotEntry, slotEntryText } from '@locks/core/backend';

const SESSION_MS = 10_000;
const TIMEOUT_MS = 10_000;
const NO_NODE = -101;
const BAD_VERSION = -103;

type Failure = (Error & { readonly code?: number }) | null | undefined;

/** The members of a client that this module uses; the library has no types of its own. */
interface ZookeeperClient {
  connect(): void;
  close(): void;
  once(event: 'connected', listener: () => void): unknown;
  /** Creates a node and those above it, unless they exist. */
  mkdirp(path: string, done: (error: Failure) => void): void;
  getData(
    path: string,
    done: (error: Failure, data?: Buffer, stat?: { readonly version: number }) => void,
  ): void;
  setData(path: string, data: Buffer, version: number, done: (error: Failure) => void): void;
}

interface ZookeeperLibrary {
  createClient(servers: string, options: { sessionTimeout: number; retries: number }): ZookeeperClient;
}

/**
 * The record in the node `/once<path>/<job>`. A write is a compare and swap: it succeeds only where nobody has written since
 * the read. Each call has a session of its own, since a job may take hours between two calls.
 */
export function zookeeperRecord(servers: string, path = '/locks'): OnceRecord {
  const library = createRequire(import.meta.url)('node-zookeeper-client') as ZookeeperLibrary;
  const nodeOf = (job: string): string => `/once${path}/${encodeURIComponent(job).replaceAll('.', '%2E')}`;
  const use = async <T>(work: (client: ZookeeperClient) => Promise<T>): Promise<T> => {
    const client = library.createClient(servers, { sessionTimeout: SESSION_MS, retries: 0 });
    try {
      const connected = new Promise<void>((resolve) => client.once('connected', resolve));
      client.connect();
      await within(connected, 'connect');
      return await within(work(client), 'answer');
    } finally {
      client.close();
    }
  };
  return {
    read: (job) =>
      use(async (client) => {
        const { text } = await readNode(client, nodeOf(job));
        return text === '' ? undefined : readSlotEntry(text);
      }),
    write: (job, entry) =>
      use(async (client) => {
        const node = nodeOf(job);
        for (;;) {
          const { text, version } = await readNode(client, node);
          if (text !== '' && readSlotEntry(text).token > entry.token) return false;
          if (await writeNode(client, node, slotEntryText(entry), version)) return true;
        }
      }),
  };
}

/**
 * Reads a node, and creates a missing one first. The creation is a write even where the node exists, so the server has caught
 * up with all others before the read.
 */
async function readNode(
  client: ZookeeperClient,
  node: string,
): Promise<{ readonly text: string; readonly version: number }> {
  await new Promise<void>((resolve, reject) => {
    client.mkdirp(node, (error) => (error ? reject(error) : resolve()));
  });
  return new Promise((resolve, reject) => {
    client.getData(node, (error, data, stat) => {
      if (error || stat === undefined) reject(error ?? new Error(`ZooKeeper gave no version of ${node}`));
      else resolve({ text: data?.toString() ?? '', version: stat.version });
    });
  });
}

/** Writes a node by compare and swap: gives `false` where somebody has written since the node had this version. */
async function writeNode(
  client: ZookeeperClient,
  node: string,
  text: string,
  version: number,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    client.setData(node, Buffer.from(text), version, (error) => {
      if (!error) resolve(true);
      else if (error.code === BAD_VERSION || error.code === NO_NODE) resolve(false);
      else reject(error);
    });
  });
}

async function within<T>(answer: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`ZooKeeper did not ${what} within ${TIMEOUT_MS} ms`)),
      TIMEOUT_MS,
    );
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
