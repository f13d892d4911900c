import { isLockError } from '@locks/core';
import { dynamodbBackend } from '@locks/dynamodb';
import { etcdBackend } from '@locks/etcd';
import { memoryBackend } from '@locks/memory';
import { mongodbBackend } from '@locks/mongodb';
import { mysqlBackend } from '@locks/mysql';
import { natsBackend } from '@locks/nats';
import { postgresAdvisoryBackend, postgresLeaseBackend } from '@locks/postgres';
import { redisBackend as onIoredis } from '@locks/redis-ioredis';
import { redisBackend as onNodeRedis } from '@locks/redis-node';
import { s3Backend } from '@locks/s3';
import { redissonBackend as redissonOnIoredis } from '@locks/redisson/ioredis';
import { redissonBackend as redissonOnNodeRedis } from '@locks/redisson/redis';
import { zookeeperBackend } from '@locks/zookeeper';
import { describe, expect, it } from 'vitest';
import { callsWithOptions, notOptions } from '../src/options/calls-with-options.ts';
import { publicOptions } from '../src/options/public-options.ts';

const everything = publicOptions();
const ADDRESS = 'redis://app:secret@host/0';

describe('the public functions', () => {
  it('with options are all called by these tests', () => {
    const keys = everything.map(({ key }) => key);
    expect([...Object.keys(callsWithOptions), ...Object.keys(notOptions)].sort()).toEqual(keys.sort());
  });

  for (const { key, names } of everything) {
    const call = callsWithOptions[key];
    if (call === undefined) continue;
    it.each(names)(
      `${key} refuses %s in every wrong spelling, and names the options that exist`,
      async (path) => {
        const name = path.slice(path.lastIndexOf('.') + 1);
        const siblings = siblingsOf(path, names);
        for (const wrong of misspellings(name)) {
          if (siblings.includes(wrong)) continue;
          const message = await refusal(() => call.call(withOption({ ...call.valid }, path, wrong) as never));
          expect(message.toLowerCase()).toContain(functionOf(key));
          expect(message).toContain(`has no option "${wrong}". Did you mean ${name}? It has `);
          const known = message.slice(message.lastIndexOf('It has ') + 7, -1).split(', ');
          expect(known.sort()).toEqual([...siblings].sort());
        }
      },
    );

    it.each([null, 'text', 5, true, [], ['text'], () => {}, new AbortController().signal])(
      `${key} refuses %o in the place of the options`,
      async (misplaced) => {
        await refusal(() => call.call(misplaced as never));
      },
    );

    it(`${key} shows no password of an address in the place of the options`, async () => {
      expect(await refusal(() => call.call(ADDRESS as never))).not.toContain('secret');
    });
  }

  it.each<[name: string, call: () => unknown]>([
    ['redisBackend of ioredis', () => onIoredis(ADDRESS as never)],
    ['redisBackend of node-redis', () => onNodeRedis(ADDRESS as never)],
    ['redissonBackend of ioredis', () => redissonOnIoredis(ADDRESS as never)],
    ['redissonBackend of node-redis', () => redissonOnNodeRedis(ADDRESS as never)],
    ['postgresLeaseBackend', () => postgresLeaseBackend(ADDRESS as never)],
    ['postgresAdvisoryBackend', () => postgresAdvisoryBackend(ADDRESS as never)],
    ['mysqlBackend', () => mysqlBackend(ADDRESS as never)],
    ['dynamodbBackend', () => dynamodbBackend(ADDRESS as never, { table: 'locks' })],
    ['s3Backend', () => s3Backend(ADDRESS as never, { bucket: 'locks' })],
    ['natsBackend', () => natsBackend(ADDRESS as never)],
    ['mongodbBackend', () => mongodbBackend(ADDRESS as never)],
    ['etcdBackend', () => etcdBackend(ADDRESS as never)],
    ['zookeeperBackend', () => zookeeperBackend(ADDRESS as never)],
  ])('%s shows no password of an address in the place of the client', async (_, call) => {
    expect(await refusal(async () => call())).not.toContain('secret');
  });

  it('memoryBackend refuses a value that is no store', async () => {
    for (const odd of [null, {}, { x: 1 }, 'text']) await refusal(() => memoryBackend(odd as never));
  });
});

/** The function that users call, in lower case: of what an adapter builds on, that of the adapter. */
function functionOf(key: string): string {
  const name = key.slice(0, key.indexOf('(')).split(/[ .]/).at(-1) as string;
  return name.replace(/^create(?=Redis)|Through$/g, '').toLowerCase();
}

/** Misspellings: a missing letter, an additional one, two exchanged, and the wrong case. */
function misspellings(name: string): string[] {
  const [last, middle] = [name.length - 1, Math.floor(name.length / 2)];
  const exchanged = name.slice(0, middle - 1) + name[middle] + name[middle - 1] + name.slice(middle + 1);
  const first = name.charAt(0);
  const otherCase = first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase();
  const all = [name.slice(0, last), `${name}${name[last]}`, otherCase + name.slice(1)];
  // A misspelling of a word of three letters changes half of it or more.
  return name.length > 4 && exchanged !== name ? [...all, exchanged] : all;
}

function siblingsOf(path: string, names: readonly string[]): string[] {
  const parent = path.slice(0, path.lastIndexOf('.') + 1);
  return names
    .filter((name) => name.startsWith(parent))
    .map((name) => name.slice(parent.length))
    .filter((name) => !name.includes('.'));
}

/** Valid options with an additional option of that name at `path`. */
function withOption(given: Record<string, unknown>, path: string, name: string): object {
  const [outer = '', ...rest] = path.split('.');
  if (rest.length === 0) return { ...given, [name]: undefined };
  const inner = given[outer] as Record<string, unknown> | undefined;
  return { ...given, [outer]: withOption(inner ?? {}, rest.join('.'), name) };
}

/** The message with which something is refused as a bad argument. */
async function refusal(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    if (isLockError(error, 'LOCK_INVALID_ARGUMENT')) return error.message;
    throw error;
  }
  return expect.fail('the argument was accepted');
}
