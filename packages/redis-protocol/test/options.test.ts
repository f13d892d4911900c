import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { createRedisBackend } from '../src/index.ts';
import { TestPort } from './test-port.ts';

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
const port = new TestPort(new Redis({ lazyConnect: true }));

describe('bad options', () => {
  it.each([
    { prefix: '{x}' },
    { prefix: 'a|b' },
    { maxPollMs: 0 },
    { maxPollMs: Number.NaN },
    { claimMs: 900 },
    { maxPollMs: 1.5 },
    { minReplicas: -1 },
    { replicaTimeoutMs: Number.POSITIVE_INFINITY },
    { retries: 3 },
    null,
  ])('are refused at once: %o', (options) => {
    expect(() => createRedisBackend(port, options as never)).toThrow(invalid);
  });
});
