import type { Grant, LockMode } from '@locks/core/backend';
import { type RedisServer, startReplicated, waitUntil } from '@locks/test-servers';
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { call, party, request } from './setup.ts';

it.each<LockMode>([{ kind: 'exclusive' }, { kind: 'shared' }])(
  'a waiter that is passed over while it listens at a former master is not told there ($kind)',
  async (mode) => {
    await using replicated = await startReplicated({ replicas: 1 });
    const [former] = replicated.replicas as [RedisServer];
    await using a = party(replicated.master);
    await using b = party(replicated.master, { checkIntervalMs: 60_000 });
    // A failover moved its commands, and not its subscription.
    const duplicate = b.client.duplicate.bind(b.client);
    let subscriber: Redis | undefined;
    b.client.duplicate = (options) => (subscriber = duplicate({ ...options, port: former.port }));
    await a.take('first');
    await b.queue(request('first'));
    await waitUntil(async () => ((await former.command('PUBSUB', 'CHANNELS')) as string[]).length === 1, {
      what: 'its subscription',
    });
    /** All that was sent to it by then was heard. */
    const heard = async () => {
      await subscriber?.ping();
      await new Promise((resolve) => setImmediate(resolve));
    };
    await heard();
    const held = await a.take('x');
    const { turn } = await b.queue({ ...request('x'), mode });
    const [, member] = (await replicated.master.command('ZRANGE', '{lock:x}:q', 0, 1)) as string[];
    expect(member).toMatch(/\|=lock:ch:/);
    const next = await a.queue(request('x'));
    await a.backend.release(held, call);
    const grant = (await next.turn) as Grant;
    await replicated.master.command('SET', 'replicated', 'x');
    await waitUntil(async () => (await former.command('GET', 'replicated')) === 'x', {
      what: 'what was written before',
    });
    await heard();
    expect(await Promise.race([turn, Promise.resolve('waits')])).toBe('waits');
    expect(await a.backend.release(grant, call)).toBe('released');
  },
);
