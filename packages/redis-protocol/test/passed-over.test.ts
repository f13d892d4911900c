import type { Grant, LockMode } from '@locks/core/backend';
import { call, type RedisServer, request, startReplicated, waitUntil } from '@locks/test-servers';
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { participant } from './participant.ts';

it.each<LockMode>([{ kind: 'exclusive' }, { kind: 'shared' }])(
  'a waiter that is passed over while it listens at a former master gets no message there ($kind)',
  async (mode) => {
    await using replicated = await startReplicated({ replicas: 1 });
    const [former] = replicated.replicas as [RedisServer];
    await using a = participant(replicated.master);
    await using b = participant(replicated.master, { maxPollMs: 60_000 });
    // As after a failover that moved the client's commands and not its subscription.
    const duplicate = b.client.duplicate.bind(b.client);
    let subscriber: Redis | undefined;
    b.client.duplicate = (options) => (subscriber = duplicate({ ...options, port: former.port }));
    await a.take('first');
    await b.queue(request('first'));
    await waitUntil(async () => ((await former.command('PUBSUB', 'CHANNELS')) as string[]).length === 1, {
      what: 'its subscription',
    });
    /** Resolves when all messages sent so far have arrived. */
    const heard = async () => {
      await subscriber?.ping();
      await new Promise((resolve) => setImmediate(resolve));
    };
    await heard();
    const held = await a.take('x');
    const { turn } = await b.queue({ ...request('x'), mode });
    const [, member] = (await replicated.master.command('ZRANGE', '{lock::x}:q', 0, 1)) as string[];
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
