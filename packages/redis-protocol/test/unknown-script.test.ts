import type { Grant, LockMode } from '@locks/core/backend';
import { call, granted, type RedisServer, request, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claim } from '../src/claim.ts';
import { keysOf } from '../src/keys.ts';
import type { RedisWaiter } from '../src/waiter.ts';
import { hearsAll, participant, type RedisParticipant } from './participant.ts';

let redis: RedisServer;
let count = 0;
const fresh = () => `resource-${++count}`;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

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
  String(await redis.command('ZRANGEBYSCORE', `{lock:${name}}:q`, 0, '+inf'));

describe('a script that the server does not know', () => {
  it('does not let a late message take the lock from its release', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { checkIntervalMs: 60_000 });
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
      `granted ${wanted.acquisitionId} ${lease.fencingToken} lock:${name}`,
    );
    await hearsAll(a, b);
    goOn();
    expect(await released).toBe('released');
  });

  it('does not let a waiter wait again that has released meanwhile', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { checkIntervalMs: 50 });
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
    await using b = participant(redis, { checkIntervalMs: 50 });
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

const permit: LockMode = { kind: 'permit', limit: 3, weight: 1 };
it.each<LockMode>([{ kind: 'exclusive' }, permit])(
  'a claim that is repeated late does not shorten a lease, $kind',
  async (mode) => {
    await using a = participant(redis);
    const name = fresh();
    const wanted = { ...request(name), mode, ttlMs: 400 };
    const grant = granted(await a.backend.attempt(wanted, true, call));
    const waiter = { keys: keysOf('lock:', name), request: wanted, call } as RedisWaiter;
    const leftMs = async () => (await a.backend.inspect(name, call)).holders[0]?.expiresInMs ?? 0;
    // It extends one that ends sooner.
    await waitUntil(async () => (await leftMs()) < 350, { what: 'a part of the ttl', everyMs: 5 });
    const [extended] = await claim(a.port, [waiter]);
    expect(extended).toMatchObject({ token: Number(grant.fencingToken) });
    await a.backend.renew([{ grant, ttlMs: 30_000 }], call);
    const [late] = await claim(a.port, [waiter]);
    expect(late).toMatchObject({ token: Number(grant.fencingToken) });
    expect(await leftMs()).toBeGreaterThan(20_000);
    await a.backend.release(grant, call);
  },
);
