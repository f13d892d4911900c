import { clientOptions, etcdSlots } from '@locks/etcd';
import type { SlotStore } from '@locks/once';
import { Etcd3 } from 'etcd3';

/** The slot store of `@locks/etcd`. Each call has a client of its own: work may take hours between two. */
export function etcdSlotsAt(hosts: string[], prefix: string | undefined): SlotStore {
  const use = async <T>(work: (slots: SlotStore) => Promise<T>): Promise<T> => {
    const client = new Etcd3(clientOptions({ hosts }));
    try {
      return await work(etcdSlots(client, prefix === undefined ? {} : { prefix }));
    } finally {
      client.close();
    }
  };
  return {
    read: (name) => use((slots) => slots.read(name)),
    write: (name, entry) => use((slots) => slots.write(name, entry)),
  };
}
