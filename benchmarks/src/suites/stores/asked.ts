import type { Store } from '../../stores/store.ts';

/** The targets of a store. */
export interface Asked {
  /** Operations of an uncontended acquire and release. */
  readonly exactly?: Readonly<Record<string, number>>;
  /** Pairs a second, as a part of the floor's. */
  readonly leastRatio?: Readonly<Record<string, number>>;
  /** Round trips, as a multiple of those of the minimal recipe by hand: uncontended and per hand-off. */
  readonly mostTrips?: number;
  /** How many requests two processes, one that waits and one that holds, may send in a second. */
  readonly mostWhileWaiting?: number;
  /** The same without a waiter. */
  readonly mostWhileIdle?: number;
}

export const askedOf: Readonly<Record<Store['id'], Asked>> = {
  postgres: {
    exactly: { '@locks/postgres lease': 2 },
    leastRatio: { '@locks/postgres lease': 0.85, '@locks/postgres advisory': 0.9 },
    mostWhileWaiting: 2,
    mostWhileIdle: 1,
  },
  mysql: { mostWhileWaiting: 2, mostWhileIdle: 1 },
  zookeeper: { mostTrips: 1.1 },
  etcd: { mostTrips: 1.1 },
  redis: {},
  local: {},
};
