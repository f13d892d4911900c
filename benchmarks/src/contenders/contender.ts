/** Gives the lock back. */
export type Release = () => Promise<unknown>;

/** One process's use of a lock library, on one connection of one client. */
export interface Session {
  acquire(name: string): Promise<Release>;
  /** One `PING` through the same client: the unit in which hand-over gaps are told. */
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Contender {
  readonly name: string;
  /** `floor`: the bare client, without a library. */
  readonly kind: 'floor' | 'ours' | 'peer';
  /** The bare use of the same client, to which this one is compared. */
  readonly floor: FloorName;
  /** The packages whose versions are told with the figures, as they are named in `package.json`. */
  readonly packages: readonly string[];
  open(url: string): Promise<Session>;
}

export type FloorName = 'raw ioredis' | 'raw ioredis 5' | 'raw node-redis';

/** The ttl of every lock of every contender, in milliseconds. */
export const TTL_MS = 30_000;

/** How the floor waits for a contended lock. */
export const POLL_MS = 10;

/** The release of the floor: compare and delete. */
export const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
