import { createLocks } from '@locks/core';
import { afterEach, describe, expect, it } from 'vitest';
import {
  acquire,
  call,
  callFor,
  freshPrefix,
  open,
  openPool,
  request,
  sql,
  take,
  until,
  useServer,
} from './fixture.ts';

useServer();

const crowd = (name: string, size: number) => Array.from({ length: size }, () => request(name));

/** Bytes of statements that the server got so far. */
async function bytesReceived(): Promise<number> {
  const [row] = await sql("SHOW GLOBAL STATUS LIKE 'Bytes_received'");
  return Number(row?.['Value']);
}

describe('a queue of thousands in one row', () => {
  it('costs a hand-off a short statement, whatever its length', async () => {
    const backend = open({ tablePrefix: freshPrefix() });
    let holder = await take(backend, request('a'));
    const waits = crowd('a', 2_000).map((wanted) => acquire(backend, wanted, callFor(60_000)));
    // Those who still wait at the end are told that the backend was closed.
    for (const wait of waits) wait.catch(() => {});
    await until(async () => (await backend.inspect('a', call)).waiters.length === 2_000);
    // The first write after the waiters were added fills in since when they wait.
    for (const wait of waits.splice(0, 2)) {
      await backend.release(holder, call);
      holder = await wait;
    }
    const before = await bytesReceived();
    for (const wait of waits.splice(0, 50)) {
      await backend.release(holder, call);
      holder = await wait;
    }
    expect(((await bytesReceived()) - before) / 50).toBeLessThan(2_000);
    const order = (await backend.inspect('a', call)).waiters;
    expect(order).toHaveLength(2_000 - 52);
    await backend.close();
  });

  it('is read by another process as it was written, byte by byte', async () => {
    const tablePrefix = freshPrefix();
    const [one, two] = [open({ tablePrefix }), open({ tablePrefix })];
    const grant = await take(one, request('a', { ttlMs: 60_000 }));
    const waiting = crowd('a', 300);
    // Waiters of two processes, of two labels, one of two bytes, and of ids of two lengths.
    waiting.forEach((_, index) => {
      const id = index % 7 === 0 ? `${index}` : `longer-${index}`;
      waiting[index] = request('a', { acquisitionId: id, label: index % 50 < 25 ? 'x' : 'ÿ' });
    });
    for (const [index, wanted] of waiting.entries()) {
      if (index % 60 === 0) await (index % 120 === 0 ? one : two).attempt(wanted, true, call);
    }
    await Promise.all(
      waiting.map((wanted, index) => (index % 3 === 0 ? one : two).attempt(wanted, true, call)),
    );
    const ids = async () => (await one.inspect('a', call)).waiters.map(({ acquisitionId }) => acquisitionId);
    const left = new Set(await ids());
    expect(left.size).toBe(300);
    for (let index = 299; index > 0; index -= 11) {
      const gone = waiting[index] as (typeof waiting)[number];
      await (index % 2 === 0 ? one : two).abandon(gone, call);
      left.delete(gone.acquisitionId);
    }
    expect(await ids()).toEqual([...left]);
    await one.release(grant, call);
    const [first, ...others] = left;
    expect(await ids()).toEqual(others);
    expect((await two.inspect('a', call)).holders).toMatchObject([{ acquisitionId: first }]);
  });

  it('may cost other locks of the process no renewal: ten thousand come, and are given up at once', async () => {
    const locks = createLocks(open({ tablePrefix: freshPrefix() }));
    const other = await locks.lock('other').acquire({ ttlMs: 9_000 });
    const holder = await locks.lock('a').acquire();
    const cancel = new AbortController();
    const waits = Array.from({ length: 10_000 }, () =>
      locks
        .lock('a')
        .acquire({ waitMs: 120_000, signal: cancel.signal })
        .catch(() => 'given up'),
    );
    await until(async () => (await locks.inspect('a')).waiters.length === 10_000, 60_000);
    await holder.release();
    const next = await Promise.race(waits);
    cancel.abort();
    expect((await Promise.all(waits)).filter((outcome) => outcome === 'given up')).toHaveLength(9_999);
    await until(async () => (await locks.inspect('a')).waiters.length === 0, 30_000);
    if (typeof next !== 'string') await next.release();
    expect(other.signal.aborted).toBe(false);
    await other.renew();
    await locks.close();
  }, 120_000);
});

describe('a queue that is as long as a packet of the server', () => {
  const packetBytes = 131_072;
  afterEach(async () => {
    await sql('SET GLOBAL max_allowed_packet = 16777216');
  });

  it('refuses the excess with an error that names the bound, and serves all others', async () => {
    await sql(`SET GLOBAL max_allowed_packet = ${packetBytes}`);
    const backend = open({ tablePrefix: freshPrefix(), pool: openPool() });
    const holder = await take(backend, request('a'));
    const served: string[] = [];
    const refused: unknown[] = [];
    const all = crowd('a', 6_000).map((wanted) =>
      acquire(backend, wanted, callFor(60_000)).then(
        async (grant) => {
          served.push(wanted.acquisitionId);
          expect(await backend.release(grant, call)).toBe('released');
        },
        (error: unknown) => void refused.push(error),
      ),
    );
    await until(() => refused.length > 0);
    const queued = await until(async () => {
      const { waiters } = await backend.inspect('a', call);
      return waiters.length + refused.length === 6_000 ? waiters : undefined;
    });
    const because: unknown = expect.stringContaining(`${packetBytes}`);
    expect(refused[0]).toMatchObject({ attempt: { status: 'full', because } });
    expect(queued.length).toBeGreaterThan(2_000);
    expect(await backend.release(holder, call)).toBe('released');
    await Promise.all(all);
    expect(served).toEqual(queued.map(({ acquisitionId }) => acquisitionId));
  }, 90_000);

  it('has room for its readers also when all of them hold', async () => {
    await sql(`SET GLOBAL max_allowed_packet = ${packetBytes}`);
    const backend = open({ tablePrefix: freshPrefix(), pool: openPool() });
    const writer = await take(backend, request('a'));
    const readers = crowd('a', 1_000).map((wanted) => ({ ...wanted, mode: { kind: 'shared' } as const }));
    const granted = Promise.allSettled(readers.map((wanted) => acquire(backend, wanted, callFor(30_000))));
    await until(async () => (await backend.inspect('a', call)).waiters.length > 100);
    expect(await backend.release(writer, call)).toBe('released');
    const outcomes = await granted;
    const failed = outcomes.filter(({ status }) => status === 'rejected');
    expect(failed.length).toBeLessThan(900);
    for (const outcome of failed) {
      expect((outcome as PromiseRejectedResult).reason).toMatchObject({ attempt: { status: 'full' } });
    }
    const held = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect((await backend.inspect('a', call)).holders).toHaveLength(held.length);
    await Promise.all(held.map((grant) => backend.release(grant, call)));
  });
});
