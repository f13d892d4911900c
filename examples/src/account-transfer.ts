/**
 * A transfer between two accounts: both or none are locked, in an order that all processes share, so that a transfer
 * from A to B and one from B to A never wait for each other. Each account's write carries its own lock's token.
 */
import { isLockError, type LockManager } from '@locks/core';

/** A table `account (id, cents, fence)`. */
export class AccountTable {
  readonly #rows = new Map<string, { readonly cents: number; readonly fence: bigint }>();

  open(id: string, cents: number): void {
    this.#rows.set(id, { cents, fence: 0n });
  }

  async cents(id: string): Promise<number> {
    const row = this.#rows.get(id);
    if (row === undefined) throw new Error(`There is no account ${id}.`);
    return row.cents;
  }

  /** One transaction over all rows: it writes every one, or none when a later holder has written any of them. */
  async update(
    changes: readonly { readonly id: string; readonly cents: number; readonly fence: bigint }[],
  ): Promise<boolean> {
    if (changes.some(({ id, fence }) => (this.#rows.get(id)?.fence ?? fence) > fence)) return false;
    for (const { id, cents, fence } of changes) this.#rows.set(id, { cents, fence });
    return true;
  }
}

export type Transfer = 'done' | 'too-little' | 'busy';

export async function transfer(
  locks: LockManager,
  table: AccountTable,
  from: string,
  to: string,
  cents: number,
): Promise<Transfer> {
  const both = locks.all([locks.lock(`account:${from}`), locks.lock(`account:${to}`)]);
  try {
    return await both.run(
      async (lease) => {
        const [have, had] = await Promise.all([table.cents(from), table.cents(to)]);
        if (have < cents) return 'too-little';
        // The shortest of both leases must last for the write.
        lease.assertValid(1_000);
        // In the order in which the locks were given.
        const [fromFence = 0n, toFence = 0n] = lease.leases.map((each) => each.fencingToken);
        const written = await table.update([
          { id: from, cents: have - cents, fence: fromFence },
          { id: to, cents: had + cents, fence: toFence },
        ]);
        if (!written) throw new Error(`A later holder has written ${from} or ${to}: this one came too late.`);
        return 'done';
      },
      { waitMs: 5_000 },
    );
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return 'busy';
    throw error;
  }
}
