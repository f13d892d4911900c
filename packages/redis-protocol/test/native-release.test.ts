import type { Grant } from '@locks/core/backend';
import { call, type RedisServer, request, startRedis } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { participant, type RedisParticipant } from './participant.ts';

let redis: RedisServer;
/** Whether this version has a command that deletes a key with a given value. */
let isNative: boolean;
let count = 0;
const fresh = () => `resource-${++count}`;

beforeAll(async () => {
  redis = await startRedis();
  const known = (await redis.command('COMMAND', 'INFO', 'delex', 'delifeq')) as readonly unknown[];
  isNative = known.some((info) => Array.isArray(info) && info.length > 0);
});
afterAll(() => redis.stop());

/** The names of all commands that a participant sends from now on. */
function commandsOf({ port }: RedisParticipant): string[] {
  const names: string[] = [];
  const send = port.send.bind(port);
  port.send = (key, command) => {
    names.push(command[0]);
    return send(key, command);
  };
  return names;
}

const isFree = async (name: string) => (await redis.command('GET', `lock::${name}`)) === null;

async function takeAndRelease({ backend }: RedisParticipant, name = fresh()): Promise<string> {
  const attempt = await backend.attempt(request(name), false, call);
  if (attempt.status !== 'granted') throw new Error(`the attempt at ${name} was ${attempt.status}`);
  const outcome = await backend.release(attempt.grant, call);
  expect(await isFree(name)).toBe(true);
  return outcome;
}

describe('a release of a lock that nobody waits for', () => {
  it('finds out once whether the server has a command of its own for it', async () => {
    await using a = participant(redis);
    const sent = commandsOf(a);
    for (let times = 0; times < 5; times += 1) expect(await takeAndRelease(a)).toBe('released');
    const releases = sent.filter((name) => name.startsWith('DEL'));
    if (isNative) expect(releases.slice(-5)).toHaveLength(5);
    else expect(releases).toEqual(['DELEX', 'DELIFEQ']);
  });

  it('is tried by one of many at once, and one of them brings the script to a server that does not know it', async () => {
    await using a = participant(redis);
    const names = Array.from({ length: 32 }, fresh);
    const grants = await Promise.all(names.map((name) => a.take(name)));
    await redis.command('SCRIPT', 'FLUSH');
    const sent = commandsOf(a);
    const outcomes = await Promise.all(grants.map((grant) => a.backend.release(grant, call)));
    expect(new Set(outcomes)).toEqual(new Set(['released']));
    for (const name of names) expect(await isFree(name)).toBe(true);
    const tried = sent.filter((name) => name.startsWith('DEL')).length;
    if (!isNative) expect(tried).toBe(2);
    // Where the server has no command, the release that tried uses the script after all.
    const scripts = names.length - (isNative ? 1 : 0);
    expect(sent.filter((name) => name === 'EVAL')).toHaveLength(1);
    expect(sent.filter((name) => name === 'EVALSHA')).toHaveLength(scripts - 1);
    await takeAndRelease(a);
    expect(sent.filter((name) => name.startsWith('DEL'))).toHaveLength(tried + (isNative ? 1 : 0));
  });

  it('uses the script where a proxy ends the connection at a command that it does not know', async () => {
    await using a = participant(redis);
    const { port } = a;
    const send = port.send.bind(port);
    let cuts = 0;
    port.send = (key, command) => {
      if (!command[0].startsWith('DEL')) return send(key, command);
      cuts += 1;
      return Promise.reject(Object.assign(new Error('Connection is closed.'), { code: 'ECONNRESET' }));
    };
    const name = fresh();
    const held = await a.take(name);
    await expect(a.backend.release(held, call)).rejects.toThrow('Connection is closed.');
    // As core repeats it.
    expect(await a.backend.release(held, call)).toBe('released');
    expect(await isFree(name)).toBe(true);
    for (let times = 0; times < 60; times += 1) await takeAndRelease(a);
    expect(cuts).toBe(1);
    // The next server, or proxy, may know it.
    const later = await Promise.allSettled(Array.from({ length: 10 }, () => takeAndRelease(a)));
    expect(later.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(cuts).toBe(2);
  });

  it('says that it was not held after somebody else took it', async () => {
    await using a = participant(redis);
    await takeAndRelease(a);
    const name = fresh();
    const held = await a.take(name);
    await redis.command('SET', `lock::${name}`, 'a stranger');
    expect(await a.backend.release(held, call)).toBe('not-held');
    expect(await redis.command('GET', `lock::${name}`)).toBe('a stranger');
    await redis.command('DEL', `lock::${name}`);
    expect(await a.backend.release(held, call)).toBe('not-held');
  });

  it('hands off what somebody has come to wait for, by one command more at most', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await takeAndRelease(a);
    await takeAndRelease(a);
    const name = fresh();
    const held = await a.take(name);
    const { turn } = await b.queue(request(name));
    const sent = commandsOf(a);
    expect(await a.backend.release(held, call)).toBe('released');
    expect(sent.filter((one) => one.startsWith('EVAL'))).toHaveLength(1);
    expect(sent.length).toBeLessThanOrEqual(2);
    const lease = (await turn) as Grant;
    expect(await b.backend.release(lease, call)).toBe('released');
    expect(await isFree(name)).toBe(true);
  });
});
