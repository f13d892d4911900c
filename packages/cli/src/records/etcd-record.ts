import { clientOptions } from '@locks/etcd';
import { type OnceRecord, readSlotEntry, slotEntryText } from '@locks/core/backend';
import { Etcd3 } from 'etcd3';

const TIMEOUT_MS = 10_000;

/**
 * The record under `once/<prefix><job>`, outside of the keys of the locks. A write is a compare and swap: it succeeds only
 * where nobody has written since the read. Each call has a client of its own, since a job may take hours between two calls.
 */
export function etcdRecord(hosts: string[], prefix = 'locks/'): OnceRecord {
  const keyOf = (job: string): Buffer => Buffer.from(`once/${prefix}${encodeURIComponent(job)}`);
  const use = async <T>(work: (client: Etcd3) => Promise<T>): Promise<T> => {
    const client = new Etcd3(clientOptions({ hosts }));
    try {
      return await work(client);
    } finally {
      client.close();
    }
  };
  return {
    read: (job) =>
      use(async (client) => {
        const { text } = await readKey(client, keyOf(job));
        return text === undefined ? undefined : readSlotEntry(text);
      }),
    write: (job, entry) =>
      use(async (client) => {
        const key = keyOf(job);
        const value = Buffer.from(slotEntryText(entry));
        for (;;) {
          const { text, revision } = await readKey(client, key);
          if (text !== undefined && readSlotEntry(text).token > entry.token) return false;
          const { succeeded } = await client.kv.txn(
            {
              // Revision 0: there is no such key.
              compare: [{ key, target: 'Mod', result: 'Equal', mod_revision: revision }],
              success: [{ request_put: { key, value } }],
              failure: [],
            },
            deadline(),
          );
          if (succeeded) return true;
        }
      }),
  };
}

async function readKey(client: Etcd3, key: Buffer): Promise<{ text: string | undefined; revision: string }> {
  const { kvs } = await client.kv.range({ key }, deadline());
  const [found] = kvs;
  return { text: found?.value.toString(), revision: found?.mod_revision ?? '0' };
}

function deadline(): { readonly deadline: number } {
  return { deadline: Date.now() + TIMEOUT_MS };
}
