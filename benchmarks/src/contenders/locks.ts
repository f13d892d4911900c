import { type Contender, type OpenLocks, type Session, TTL_MS } from './contender.ts';

const waitForever = { waitMs: Number.POSITIVE_INFINITY };

/** A backend of ours with core on top, as applications use it. */
export function oursContender(
  what: Pick<Contender, 'store' | 'name' | 'floor'> & {
    /** Beside `@locks/core`. */
    readonly packages: readonly string[];
    openLocks(url: string, ttlMs: number): Promise<OpenLocks>;
  },
): Contender {
  return {
    ...what,
    kind: 'ours',
    packages: ['@locks/core', ...what.packages],
    open: async (url) => sessionOf(await what.openLocks(url, TTL_MS)),
  };
}

function sessionOf({ locks, ping, close }: OpenLocks): Session {
  return {
    async acquire(name) {
      const lease = await locks.lock(name).acquire(waitForever);
      return () => lease.release();
    },
    ping,
    close,
  };
}
