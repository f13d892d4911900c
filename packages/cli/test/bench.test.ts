import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { locksHere, Program } from './program.ts';
import { startStore, TestRedis } from './started-stores.ts';

const redis = new TestRedis();

/** How many pings the server has answered. */
async function pings(): Promise<number> {
  return Number(/^cmdstat_ping:calls=(\d+)/m.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
}

const FIGURES = {
  count: expect.any(Number) as number,
  perSecond: expect.any(Number) as number,
  medianMs: expect.any(Number) as number,
  p99Ms: expect.any(Number) as number,
  pings: expect.any(Number) as number,
};

interface Row {
  readonly count: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly pings: number;
}

describe('locks bench', () => {
  it('measures each row in milliseconds and pings, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await locksHere(redis.url, 'bench', '--seconds', '2', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { seconds, ...rows } = JSON.parse(stdout) as Record<string, Row> & { seconds: number };
    expect(seconds).toBe(2);
    expect(rows).toEqual({ ping: FIGURES, uncontended: FIGURES, contended: FIGURES, handOff: FIGURES });
    for (const { count, medianMs, p99Ms, pings } of Object.values(rows)) {
      expect(count).toBeGreaterThan(0);
      expect(medianMs).toBeGreaterThan(0);
      expect(p99Ms).toBeGreaterThanOrEqual(medianMs);
      expect(pings).toBeGreaterThan(0);
    }
    // A lock and its release are two requests.
    expect(rows['uncontended']?.pings).toBeGreaterThan(1);
    expect(rows['contended']?.medianMs).toBeGreaterThan(rows['uncontended']?.medianMs ?? 0);
    const keys = await redis.client.keys('*');
    expect(keys.filter((key) => !key.startsWith('locks:token:'))).toEqual(['lock:{layout}']);
  });

  it('shows a table', async () => {
    const { stdout } = await locksHere(redis.url, 'bench', '--seconds', '1');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual([
      '',
      'ping',
      'acquire and release, nobody else wants it',
      'acquire and release, 8 want it',
      'hand-off, from the release to the next grant',
      '',
    ]);
    expect(stdout).toMatch(/^ +per second +median +p99 +in pings\n/);
  });

  it.each([
    ['SIGINT', 130, 'ping'],
    ['SIGINT', 130, 'uncontended'],
    ['SIGINT', 130, 'contended'],
    ['SIGTERM', 143, 'handOff'],
  ] as const)('leaves nothing behind after %s (%i) in the row %s', async (signal, code, row) => {
    // The first row lasts a tenth of the time, the others three.
    const seconds = row === 'ping' ? 60 : 3;
    const before = await pings();
    const program = new Program(['bench', '--seconds', String(seconds)], redis.url);
    const { child } = program;
    const runs =
      row === 'ping'
        ? async () => (await pings()) > before + 100
        : async () => (await redis.used()).some((name) => name.endsWith(`-${row}`));
    await waitUntil(runs, { what: `the row ${row}`, everyMs: 1 });
    child.kill(signal);
    expect(await program.outcome).toMatchObject({ code, stdout: '' });
    expect(await redis.used()).toEqual([]);
    const keys = await redis.client.keys('*');
    expect(keys.filter((key) => !key.startsWith('locks:token:'))).toEqual(['lock:{layout}']);
  });

  it('works on a store without pushed messages, and on a database', async () => {
    for (const name of ['postgres', 'sqlite'] as const) {
      await using store = await startStore(name);
      const { url } = store;
      const { code, stdout } = await locksHere(url, 'bench', '--seconds', '1', '--json');
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ handOff: FIGURES });
      expect((await locksHere(url, 'ls')).stdout).toBe('nothing is held or waited for\n');
    }
  });

  it.each(['0', '1.5', 'many', '3601'])('refuses --seconds %s', async (seconds) => {
    const { code, stderr } = await locksHere(redis.url, 'bench', '--seconds', seconds);
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining('--seconds') as string });
  });
});
