import type { SlotStore } from '@locks/core/backend';
import { slotsIn } from '@locks/record-protocol/once';
import type { Etcd3 } from 'etcd3';
import { EtcdPort } from './etcd-port.ts';
import { REQUEST_TIMEOUT_MS, type EtcdSlotsOptions, slotSource } from './options.ts';
import { textStore } from './text-store.ts';

// setup: import { createLocks } from '@locks/core'; import { clientOptions, etcdBackend, etcdSlots } from '@locks/etcd'; import { day, once } from '@locks/once'; import { Etcd3 } from 'etcd3';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a key for each name, `<prefix>once/<name>`, which is written by one
 * transaction that compares its revision.
 *
 * @param client - an `Etcd3`, which stays open
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const client = new Etcd3(clientOptions({ hosts: 'http://10.0.0.1:2379' }));
 * const locks = createLocks(etcdBackend(client));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: etcdSlots(client) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function etcdSlots(client: Etcd3, options: EtcdSlotsOptions = {}): SlotStore {
  const what = 'etcdSlots()';
  const { source, prefix } = slotSource(what, client, options);
  return slotsIn(textStore(new EtcdPort(source, REQUEST_TIMEOUT_MS)), prefix, what);
}
