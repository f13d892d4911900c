import type { RedisServer } from './redis-server.ts';

export interface MigrationHooks {
  /** The slot is marked on both sides, no key has moved: unknown keys are asked for at the target. */
  readonly beforeKeys?: () => Promise<void>;
  /** Half of the keys have moved, or those that `first` names: a script with keys on both sides gets `TRYAGAIN`. */
  readonly between?: () => Promise<void>;
  /** All keys have moved, the slot still belongs to the source. */
  readonly afterKeys?: () => Promise<void>;
  /** Which keys move before `between`. @defaultValue every other key, in the order of their names */
  readonly first?: (key: string) => boolean;
}

export interface MigrationParties {
  readonly from: { readonly server: RedisServer; readonly id: string };
  readonly to: { readonly server: RedisServer; readonly id: string };
  /** The other masters, which are notified at the end. */
  readonly others: readonly RedisServer[];
}

/** The sequence of https://redis.io/docs/latest/commands/cluster-setslot/ */
export async function moveSlot(
  slot: number,
  parties: MigrationParties,
  hooks: MigrationHooks,
): Promise<void> {
  const { from, to, others } = parties;
  await to.server.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
  await from.server.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  try {
    await hooks.beforeKeys?.();
    const keys = await keysIn(from.server, slot);
    await moveKeys(from.server, to.server, keys.filter(hooks.first ?? ((_, index) => index % 2 === 0)));
    await hooks.between?.();
  } finally {
    // The keys are read again: some may have been added or deleted meanwhile.
    await moveKeys(from.server, to.server, await keysIn(from.server, slot));
    try {
      await hooks.afterKeys?.();
    } finally {
      // The target comes first: after the source, the slot would have no owner for a moment.
      for (const server of [to.server, from.server, ...others]) {
        await server.command('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
      }
    }
  }
}

async function keysIn(server: RedisServer, slot: number): Promise<string[]> {
  const count = Number(await server.command('CLUSTER', 'COUNTKEYSINSLOT', slot));
  const keys = await server.command('CLUSTER', 'GETKEYSINSLOT', slot, count);
  return Array.isArray(keys) ? keys.map(String).sort() : [];
}

async function moveKeys(from: RedisServer, to: RedisServer, keys: readonly string[]): Promise<void> {
  for (let start = 0; start < keys.length; start += 100) {
    await from.command('MIGRATE', to.host, to.port, '', 0, 5_000, 'KEYS', ...keys.slice(start, start + 100));
  }
}
