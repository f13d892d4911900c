import type { TextRecordStore } from '@locks/record-protocol/once';
import type { ICompare, IKeyValue } from 'etcd3';
import { read } from './conditions.ts';
import type { EtcdPort } from './etcd-port.ts';
import { keysAt } from './txn-responses.ts';

/** A server takes a request of 1.5 MiB. */
const MOST_BYTES = 1_048_576;

type StoredText = NonNullable<Awaited<ReturnType<TextRecordStore['read']>>['records'][number]>;

/** Texts in keys without a lease, compared and swapped by the revision of their last write. */
export function textStore(port: EtcdPort): TextRecordStore {
  return {
    name: 'etcd',
    maxValueBytes: MOST_BYTES,
    // etcd tells no time.
    clock: { stepMs: 0, skewMs: 0, endsHolds: false },
    async read(keys, { timeoutMs }) {
      const response = await port.run(
        keys.map((key) => read({ key: Buffer.from(key) })),
        timeoutMs,
      );
      return { records: keys.map((_, at) => storedText(keysAt(response, at)[0])) };
    },
    async write({ key: name, value, ifVersion }, { timeoutMs }) {
      const key = Buffer.from(name);
      const write =
        value === undefined
          ? { request_delete_range: { key } }
          : { request_put: { key, value: Buffer.from(value) } };
      const request = {
        compare: [lastWrittenAt(key, ifVersion as string | undefined)],
        success: [write],
        failure: [read({ key })],
      };
      const response = await port.txn(request, timeoutMs);
      if (response.succeeded) return { status: 'written', version: response.header.revision };
      return { status: 'conflict', present: storedText(keysAt(response, 0)[0]) ?? 'absent' };
    },
    connectionError: () => port.connectionError,
  };
}

/** The condition that a key was last written at a revision, as the server gave it; `undefined`: that there is no such key. */
export function lastWrittenAt(key: Buffer, revision: string | undefined): ICompare {
  return { key, target: 'Mod', result: 'Equal', mod_revision: revision ?? '0' };
}

function storedText(found: IKeyValue | undefined): StoredText | undefined {
  return found && { value: found.value, version: found.mod_revision };
}
