import { expect, it } from 'vitest';
import { locks, locksHere } from './program.ts';
import { TestRedis } from './started-stores.ts';

const SECRET = 'hunter2-s3cret';
const redis = new TestRedis();

/** URLs with a password: of a server that refuses it, of none, and of stores that take none in their URL. */
const urls = (): readonly string[] => [
  `redis://user:${SECRET}@${new URL(redis.url).host}`,
  `redis://user:${SECRET}@127.0.0.1:1`,
  `redis://user:${SECRET}@127.0.0.1:1,127.0.0.1:2`,
  `redis://user:${SECRET}@127.0.0.1:x,127.0.0.1:2`,
  `redis+sentinel://user:${SECRET}@127.0.0.1:1/main`,
  `postgres://user:${SECRET}@127.0.0.1:1/db`,
  `mysql://user:${SECRET}@127.0.0.1:1/db`,
  `etcd://user:${SECRET}@127.0.0.1:1`,
  `zookeeper://user:${SECRET}@127.0.0.1:1`,
  `nats://user:${SECRET}@127.0.0.1:1`,
  `mongodb://user:${SECRET}@127.0.0.1:1/app`,
  `mongodb://user:${SECRET}@127.0.0.1:x/app`,
  `dynamodb://user:${SECRET}@eu-central-1/locks`,
  `s3://user:${SECRET}@my-locks`,
  `kubernetes://user:${SECRET}@default`,
  `user:${SECRET}@127.0.0.1:1`,
  `https://user:${SECRET}@[`,
];

it.each([['ls'], ['doctor'], ['run', 'x', '--no-wait', '--', 'true']])(
  'shows no password of a URL: %s',
  { timeout: 120_000 },
  async (...args) => {
    const outcomes = await Promise.all(urls().map((url) => locks(url, ...args)));
    for (const [index, { code, stdout, stderr }] of outcomes.entries()) {
      expect(code, urls()[index]).not.toBe(0);
      expect(stderr + stdout).not.toBe('');
      expect(stderr + stdout, urls()[index]).not.toContain(SECRET);
    }
  },
);

it.each(['etcd', 'zookeeper', 'dynamodb', 's3', 'kubernetes'])(
  'refuses a user and a password in a URL of %s',
  async (scheme) => {
    const { code, stderr } = await locksHere(`${scheme}://user:${SECRET}@127.0.0.1:1`, 'ls');
    expect([code, stderr]).toEqual([64, expect.stringContaining(`not supported for ${scheme}`)]);
  },
);
