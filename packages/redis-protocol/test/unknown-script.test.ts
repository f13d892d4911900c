import type { Grant } from '@locks/core/backend';
import { call, request } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { hearsAll, participant, type RedisParticipant } from './participant.ts';

useRedis();

/** Holds back the answer that the server does not know the script of the next command. */
function holdNextRefusal({ port }: RedisParticipant): { refused: Promise<void>; goOn: () => void } {
  let isRefused = (): void => {};
  let goOn = (): void => {};
  const refused = new Promise<void>((resolve) => (isRefused = resolve));
  const held = new Promise<void>((resolve) => (goOn = resolve));
  const send = port.send.bind(port);
  port.send = (key, command) => {
    port.send = send;
    return send(key, command).catch(async (error: unknown) => {
      isRefused();
      await held;
      throw error;
    });
  };
  return { refused, goOn };
}

const membersOf = async (name: string) =>
  String(await redis.command('ZRANGEBYSCORE', `{lock::${name}}:q`, 0, '+inf'));

describe('a script that the server does not know', () => {
  it('does not let a late message take the lock from its release', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = request(name);
    const { turn } = await b.queue(wanted);
    const channel = /\|=([^|]+)\|/.exec(await membersOf(name))?.[1] ?? '';
    await a.backend.release(held, call);
    const lease = (await turn) as Grant;
    await redis.command('SCRIPT', 'FLUSH');
    // An abandon is executed at once.
    await a.backend.abandon(request(fresh()), call);
    const { refused, goOn } = holdNextRefusal(b);
    const released = b.backend.release(lease, call);
    await refused;
    await redis.command(
      'PUBLISH',
      channel,
      `granted ${wanted.acquisitionId} ${lease.fencingToken} lock::${name}`,
    );
    await hearsAll(a, b);
    goOn();
    expect(await released).toBe('released');
  });

  it('does not let a waiter wait again that has released meanwhile', async () => {
    await using a = participant(redis);
    // Its next look is held back: it must not count as dead before its turn, also on a busy machine.
    await using b = participant(redis, { maxPollMs: 500 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const { turn } = await b.queue(request(name));
    const { refused, goOn } = holdNextRefusal(b);
    await redis.command('SCRIPT', 'FLUSH');
    // The regular check.
    await refused;
    await a.backend.release(held, call);
    await b.backend.release((await turn) as Grant, call);
    goOn();
    await new Promise(setImmediate);
    await b.client.ping();
    expect(await redis.command('KEYS', `*${name}*`)).toEqual([]);
  });

  it('has those that still wait attempt again', async () => {
    await using a = participant(redis);
    // Its next look is held back: it must not count as dead before its turn, also on a busy machine.
    await using b = participant(redis, { maxPollMs: 500 });
    await b.openChannel();
    const [name, other] = [fresh(), fresh()];
    const held = await a.take(name);
    const { turn } = await b.queue(request(name));
    await a.take(other);
    const { turn: hint } = await b.queue(request(other));
    const { refused, goOn } = holdNextRefusal(b);
    await redis.command('SCRIPT', 'FLUSH');
    await refused;
    await a.backend.release(held, call);
    await b.backend.release((await turn) as Grant, call);
    goOn();
    expect(await hint).toBeUndefined();
  });
});
