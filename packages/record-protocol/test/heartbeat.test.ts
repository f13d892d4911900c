import { expect, it } from 'vitest';
import type { RecordStore, RecordWrite } from '../src/record-store.ts';
import { RecordsAsTable } from '../src/records-as-table.ts';

/** Versions are made of the value, as S3 makes ETags, and as Kubernetes keeps the version where nothing changes. */
function storeWithVersionsOfValues(): { readonly store: RecordStore; readonly values: string[] } {
  const values: string[] = [];
  const store: RecordStore = {
    name: 'versions-of-values',
    maxValueBytes: 100_000,
    clock: { stepMs: 1, skewMs: 0, endsHolds: false },
    read: async (keys) => ({ records: keys.map(() => undefined) }),
    write: async ({ value }: RecordWrite) => {
      values.push(Buffer.from(value ?? []).toString());
      return { status: 'written', version: values.at(-1) as string };
    },
    isRetryable: () => false,
    close: async () => {},
  };
  return { store, values };
}

it('gives each heartbeat a value of its own, from which a store can make another version', async () => {
  const { store, values } = storeWithVersionsOfValues();
  const table = new RecordsAsTable(store, 'locks/');
  const limit = { now: () => performance.now(), deadline: performance.now() + 1_000 };
  for (let beat = 0; beat < 3; beat += 1) await table.beat('me', limit, 3_000);
  expect(new Set(values).size).toBe(3);
});
