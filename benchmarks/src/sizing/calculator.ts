// What locks ask of a store, from measured costs. No imports: the site runs it in the browser.

/** What one thing costs. Microseconds are processor time. */
export interface Cost {
  readonly serverMicros: number;
  readonly clientMicros: number;
  /** As the server or the clients count them; absent where they were not counted. */
  readonly requests?: number;
}

/** Measured with a number of processes, each with a client of its own that holds one lock and waits for one. */
export interface FleetFigures {
  readonly processes: number;
  /** For each process and second: connected; and beyond that, holding one lease (by its ttl); and waiting for one lock. */
  readonly connected: Cost;
  readonly holding: Cost;
  readonly waiting: Cost;
  /** For each process, when it waits. */
  readonly connections: number;
  readonly serverBytes: number;
  readonly clientBytes: number;
  /** Of two more processes that hand one lock to each other meanwhile. */
  readonly handOffMs: number;
  readonly handOffServerMicros: number;
}

/** The measured costs of one backend. */
export interface StoreCosts {
  readonly backend: string;
  /** An uncontended acquire and its release. */
  readonly pair: Cost;
  /** An acquire that waits for another process, and its release. */
  readonly handOff: Cost & { readonly ms: number };
  /** One renewal of one lease, of many that one process holds. */
  readonly renewal: Cost;
  /** One waiter for a second, of many of one process. */
  readonly waiter: Cost;
  /** Each resource that `list` tells of; absent where there is no list. */
  readonly listed?: Cost;
  readonly bytes: Readonly<Record<'leaseServer' | 'leaseClient' | 'waiterServer' | 'waiterClient', number>>;
  /** The ttl of the leases of the fleets, in milliseconds. */
  readonly ttlMs: number;
  /** A session keeps the leases: what that costs does not depend on a ttl. */
  readonly isSession?: boolean;
  /** By their size. Empty without a server. */
  readonly fleets: readonly FleetFigures[];
  /** Why there is no larger one. */
  readonly endsBecause?: string;
}

export interface Load {
  readonly acquiresPerSecond: number;
  /** The part of them that waits for another process, 0 to 1. */
  readonly contended: number;
  readonly processes: number;
  /** Leases held at one time. */
  readonly holders: number;
  /** Acquires that wait at one time. */
  readonly waiters: number;
  readonly ttlMs: number;
}

export interface StoreLoad {
  /** Of one core of the server, 1 is all of it. */
  readonly cores: number;
  readonly requestsPerSecond: number;
  readonly connections: number;
  /** Beside what the server needs without clients. */
  readonly bytes: number;
}

/** Each lease is renewed when a third of its ttl is over. */
const RENEWALS_PER_TTL = 3;

/**
 * Adds up what each thing costs. One lease, and one waiter, of each process costs as much as measured alone; the others of the
 * process go with it in one request. The costs of a process are those of a fleet of `measuredWith` processes.
 *
 * @param measuredWith - default 100: larger fleets tell whether the sum is right
 */
export function loadOf(costs: StoreCosts, load: Load, measuredWith = 100): StoreLoad {
  const { processes, holders, waiters, contended, acquiresPerSecond: acquires } = load;
  const { serverMicros: handOffAlone } = costs.handOff;
  // NOTIFY of PostgreSQL wakes every listener: a hand-off costs more with more processes that wait.
  const { processes: most = 1, handOffServerMicros: withMost = 0 } = costs.fleets.at(-1) ?? {};
  const each = Math.max(0, withMost - handOffAlone) / most;
  const fleet = costs.fleets.findLast((one) => one.processes <= measuredWith) ?? noFleet;
  const [holding, waiting] = [Math.min(holders, processes), Math.min(waiters, processes)];
  const ttlMs = costs.isSession ? costs.ttlMs : load.ttlMs;
  const renewalsPerSecond = (1_000 * RENEWALS_PER_TTL) / ttlMs;
  const parts: readonly (readonly [number, Cost])[] = [
    [acquires * (1 - contended), costs.pair],
    [acquires * contended, { ...costs.handOff, serverMicros: handOffAlone + waiting * each }],
    [processes, fleet.connected],
    [(holding * costs.ttlMs) / ttlMs, fleet.holding],
    [(holders - holding) * renewalsPerSecond, costs.renewal],
    [waiting, fleet.waiting],
    [waiters - waiting, costs.waiter],
  ];
  const sum = (of: (cost: Cost) => number): number =>
    parts.reduce((total, [times, cost]) => total + times * of(cost), 0);
  return {
    cores: sum(({ serverMicros }) => serverMicros) / 1e6,
    requestsPerSecond: sum(({ requests = 0 }) => requests),
    connections: processes * fleet.connections,
    bytes:
      processes * fleet.serverBytes +
      (holders - holding) * costs.bytes.leaseServer +
      (waiters - waiting) * costs.bytes.waiterServer,
  };
}

const nothing: Cost = { serverMicros: 0, clientMicros: 0 };
const noFleet: FleetFigures = {
  processes: 0,
  connected: nothing,
  holding: nothing,
  waiting: nothing,
  connections: 0,
  serverBytes: 0,
  clientBytes: 0,
  handOffMs: 0,
  handOffServerMicros: 0,
};
