import { StoreLayout } from '@locks/core/backend';
import { absent } from './conditions.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Keys } from './keys.ts';

/** The number of the layout of keys and values. A change that an older version would not understand raises it. */
const LAYOUT = 1;

/**
 * The marker of the layout below a prefix. It lies below the prefix, so that the rights for the locks cover it.
 *
 * @param limitMs - how long an answer is waited for, in milliseconds
 */
export function etcdLayout(port: EtcdPort, keys: Keys, limitMs: number): StoreLayout {
  const key = keys.layout;
  return new StoreLayout(LAYOUT, {
    what: `the locks below ${JSON.stringify(keys.prefix)}`,
    other: 'another prefix',
    reset: `delete the key ${key.toString()}`,
    read: async () => (await port.valueOf(key, limitMs))?.toString(),
    create: async (layout) => {
      const made = {
        compare: [absent(key)],
        success: [{ request_put: { key, value: Buffer.from(layout) } }],
        failure: [],
      };
      return (await port.txn(made, limitMs)).succeeded;
    },
  });
}
