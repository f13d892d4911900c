import { expect, it } from 'vitest';
import { changedSince, codeOf } from '../src/measure/code.ts';

it('takes the packages of this repository, and those that they depend on', () => {
  const code = codeOf(['ioredis', '@locks/redis-ioredis']);
  expect(Object.keys(code)).toEqual(['@locks/core', '@locks/redis-ioredis', '@locks/redis-protocol']);
  expect(changedSince(code)).toEqual([]);
});

it('finds the packages whose code is another one', () => {
  const code = { ...codeOf(['@locks/sqlite']), '@locks/sqlite': 'another' };
  expect(changedSince(code)).toEqual(['@locks/sqlite']);
});
