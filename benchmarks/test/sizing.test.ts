import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type FleetFigures, loadOf, type StoreCosts } from '../src/sizing/calculator.ts';
import { idleMicros } from '../src/sizing/sections.ts';

const results = new URL('../results/sizing.json', import.meta.url);
const { figures } = JSON.parse(readFileSync(results, 'utf8')) as { readonly figures: readonly StoreCosts[] };
const servers = figures.filter(({ fleets }) => fleets.length > 1);
const LARGEST = 1_000;

/** How far a sum of costs may be from what was measured, as a factor: a busy server does more at one time. */
const TOLERANCE = 2;
/** Below this part of a core, a server's own work counts for too much. */
const NOISE = 0.05;

it('was measured with 1 000 processes, or says why not', () => {
  expect(servers.length).toBeGreaterThanOrEqual(6);
  for (const { backend, fleets, endsBecause } of servers)
    expect(fleets.at(-1)?.processes === LARGEST || endsBecause !== undefined, backend).toBe(true);
});

it.each(
  servers.flatMap((costs) => (costs.endsBecause === undefined ? [[costs.backend, costs] as const] : [])),
)('predicts the fleet of 1 000 processes of %s from the one before', (_, costs) => {
  const [before, largest] = costs.fleets.slice(-2) as [FleetFigures, FleetFigures];
  const { processes } = largest;
  const all = { acquiresPerSecond: 0, contended: 0, processes, holders: processes, waiters: processes };
  const { cores, connections, bytes } = loadOf(costs, { ...all, ttlMs: costs.ttlMs }, before.processes);
  expect(cores).toBeLessThan(NOISE + (TOLERANCE * idleMicros(largest)) / 1e6);
  expect(cores).toBeGreaterThan(idleMicros(largest) / TOLERANCE / 1e6 - NOISE);
  for (const [foretold, measured] of [
    [connections, processes * largest.connections],
    [bytes, processes * largest.serverBytes],
  ] as const) {
    expect(foretold / measured).toBeLessThan(TOLERANCE);
    expect(foretold / measured).toBeGreaterThan(1 / TOLERANCE);
  }
});

const cost = (serverMicros: number, requests = 1) => ({ serverMicros, clientMicros: 0, requests });
const costs: StoreCosts = {
  backend: 'a store',
  pair: cost(100, 2),
  handOff: { ...cost(200, 2), ms: 1 },
  renewal: cost(1, 0),
  waiter: cost(2, 0),
  bytes: { leaseServer: 10, leaseClient: 0, waiterServer: 20, waiterClient: 0 },
  ttlMs: 3_000,
  fleets: [
    {
      processes: 100,
      ...{ connected: cost(10, 0), holding: cost(30), waiting: cost(40) },
      ...{ connections: 2, serverBytes: 1_000, clientBytes: 0, handOffMs: 1, handOffServerMicros: 300 },
    },
  ],
};

const none = { acquiresPerSecond: 0, contended: 0, processes: 0, holders: 0, waiters: 0, ttlMs: 3_000 };

it('adds up acquires, processes, the first lease and waiter of each, and the others', () => {
  expect(loadOf(costs, { ...none, acquiresPerSecond: 1_000, contended: 0.5 })).toMatchObject({
    cores: 0.15,
    requestsPerSecond: 2_000,
  });
  // 10 connected, 10 leases alone and 90 with them, once a second; 10 waiters alone and 40 with them.
  const busy = loadOf(costs, { ...none, processes: 10, holders: 100, waiters: 50 });
  expect(busy.cores * 1e6).toBeCloseTo(100 + 300 + 90 + 400 + 80);
  expect(busy).toMatchObject({ requestsPerSecond: 20, connections: 20, bytes: 10_000 + 900 + 800 });
  // A ttl that is ten times as long has a tenth of the renewals.
  const calm = loadOf(costs, { ...none, processes: 10, holders: 100, ttlMs: 30_000 });
  expect(calm.cores * 1e6).toBeCloseTo(100 + 30 + 9);
});

it('has the same sessions whatever the ttl', () => {
  const load = { ...none, processes: 10, holders: 100, ttlMs: 30_000 };
  expect(loadOf({ ...costs, isSession: true }, load).cores * 1e6).toBeCloseTo(100 + 300 + 90);
});

it('charges a hand-off for the processes that wait meanwhile', () => {
  const waiting = { ...none, processes: 50, waiters: 50 };
  const { cores } = loadOf(costs, { ...waiting, acquiresPerSecond: 1, contended: 1 });
  expect((cores - loadOf(costs, waiting).cores) * 1e6).toBeCloseTo(250);
});
