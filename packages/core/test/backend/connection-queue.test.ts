import { describe, expect, it } from 'vitest';
import {
  type ConnectionPool,
  ConnectionQueue,
  type ConnectionRequest,
  PRIORITIES,
  type Priority,
} from '../../src/backend/index.ts';

type Done = Parameters<ConnectionPool<string>['connect']>[0];

/** A pool that answers when a test says so. */
class HeldPool implements ConnectionPool<string> {
  readonly limit: number;
  readonly asked: Done[] = [];
  readonly released: string[] = [];

  constructor(limit: number) {
    this.limit = limit;
  }

  connect(done: Done): void {
    this.asked.push(done);
  }

  release(connection: string): void {
    this.released.push(connection);
  }

  /** Answers the oldest ask. */
  answer(error?: Error): void {
    this.asked.shift()?.(error, error === undefined ? 'connection' : undefined);
  }
}

function setUp(limit: number) {
  const pool = new HeldPool(limit);
  const queue = new ConnectionQueue(pool);
  const served: string[] = [];
  const failed: string[] = [];
  const add = (
    name: string,
    priority: Priority,
    changes: Partial<ConnectionRequest<string>> = {},
  ): (() => void) => {
    const serve = (): boolean => served.push(name) > 0;
    const fail = (): void => void failed.push(name);
    return queue.add(
      Object.defineProperties({ priority, serve, fail }, Object.getOwnPropertyDescriptors(changes)),
    );
  };
  return { pool, queue, served, failed, add };
}

const { holder, abandon, acquire } = PRIORITIES;

describe('ConnectionQueue', () => {
  it('serves by priority, and requests of one priority in their order', () => {
    const { pool, queue, served, add } = setUp(1);
    add('acquire 1', acquire);
    add('acquire 2', acquire);
    add('abandon', abandon);
    add('holder 1', holder);
    add('holder 2', holder);
    for (let at = 0; at < 5; at += 1) {
      pool.answer();
      queue.returned();
    }
    expect(served).toEqual(['holder 1', 'holder 2', 'abandon', 'acquire 1', 'acquire 2']);
  });

  it('lets a request go in the end, however many that are more urgent come all the time', () => {
    const { pool, queue, served, add } = setUp(1);
    add('acquire', PRIORITIES.acquire);
    for (let turn = 0; turn < 70; turn += 1) {
      add(`renew ${turn}`, PRIORITIES.holder);
      pool.answer();
      queue.returned();
    }
    expect(served.indexOf('acquire')).toBe(32);
    // Those that it let pass, and those behind it, keep their order.
    expect(served.filter((name) => name !== 'acquire')).toEqual(
      Array.from({ length: 69 }, (_, turn) => `renew ${turn}`),
    );
  });

  it('serves a request by the priority that it has when a connection comes', () => {
    const { pool, served, add } = setUp(1);
    let priority: Priority = acquire;
    add('first', acquire);
    add('risen', acquire, {
      get priority() {
        return priority;
      },
    });
    priority = holder;
    pool.answer();
    expect(served).toEqual(['risen']);
  });

  it('asks for no more connections than the pool lends, nor than requests wait', () => {
    const { pool, add } = setUp(2);
    add('one', acquire);
    expect(pool.asked).toHaveLength(1);
    add('two', acquire);
    add('three', acquire);
    expect(pool.asked).toHaveLength(2);
  });

  it('serves nobody who withdrew, and gives the connection back after the call of the pool', async () => {
    const { pool, served, failed, add } = setUp(1);
    const withdraw = add('withdrawn', acquire);
    withdraw();
    pool.answer();
    expect(pool.released).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pool.released).toEqual(['connection']);
    expect([served, failed]).toEqual([[], []]);
    add('next', acquire);
    pool.answer();
    expect(served).toEqual(['next']);
  });

  it('offers a connection to the next request when one declines it', () => {
    const { pool, served, add } = setUp(1);
    add('declines', holder, { serve: () => false });
    add('takes', acquire);
    pool.answer();
    expect(served).toEqual(['takes']);
  });

  it('asks again for a request that comes while the ask of one that withdrew hangs', () => {
    const { pool, served, add } = setUp(2);
    add('withdrawn', acquire)();
    add('next', acquire);
    expect(pool.asked).toHaveLength(2);
    pool.asked.shift();
    pool.answer();
    expect(served).toEqual(['next']);
  });

  it('asks for a connection that came back while another ask hangs', () => {
    const { pool, queue, served, add } = setUp(2);
    add('first', acquire);
    pool.answer();
    add('second', acquire);
    const [hanging] = pool.asked.splice(0);
    queue.returned();
    pool.answer();
    expect(served).toEqual(['first', 'second']);
    queue.returned();
    hanging?.(undefined, 'late');
    expect(served).toEqual(['first', 'second']);
  });

  it('fails the least urgent request for each connect that fails', () => {
    const { pool, served, failed, add } = setUp(1);
    add('holder', holder);
    add('abandon', abandon);
    add('acquire', acquire);
    pool.answer(new Error('refused'));
    pool.answer(new Error('refused'));
    expect(failed).toEqual(['acquire', 'abandon']);
    pool.answer();
    expect(served).toEqual(['holder']);
  });

  it('fails nobody when an ask fails that no request waits for any more', () => {
    const { pool, failed, add } = setUp(2);
    add('withdrawn', acquire)();
    add('next', acquire);
    pool.answer(new Error('refused'));
    expect(failed).toEqual([]);
  });

  it('ends 5 000 requests of a pool that calls back at once, without recursion', () => {
    let refuses = true;
    const queue: ConnectionQueue<string> = new ConnectionQueue({
      limit: 1,
      connect: (done) => (refuses ? done(new Error('ending'), undefined) : done(undefined, 'connection')),
      release: () => undefined,
    });
    let failed = 0;
    let served = 0;
    const request = {
      priority: acquire,
      serve: () => {
        served += 1;
        queue.returned();
        return true;
      },
      fail: () => void (failed += 1),
    };
    queue.add(request);
    expect(failed).toBe(1);
    // Requests that come while the first one has the only connection.
    refuses = false;
    queue.add({
      ...request,
      serve: () => {
        for (let at = 0; at < 5_000; at += 1) queue.add({ ...request });
        queue.returned();
        return true;
      },
    });
    expect(served).toBe(5_000);
  });
});
