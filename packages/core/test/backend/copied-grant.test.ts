import { expect, test } from 'vitest';
import { copiedGrant } from '../../src/backend/copied-grant.ts';
import type { Grant } from '../../src/backend/types.ts';

const grant: Grant = {
  request: { resource: 'a', acquisitionId: 'id', mode: { kind: 'exclusive' }, ttlMs: 30_000 },
  fencingToken: 7n,
  countedFrom: 1,
  validForMs: 20_000,
};

test('a copy of a grant has what another instance renews by, and nothing of the instance that made it', () => {
  const own = { ...grant, lost: new AbortController().signal, keys: () => 'a' };
  expect(copiedGrant(own)).toStrictEqual(grant);
  const { request, countedFrom } = grant;
  expect(copiedGrant({ request, countedFrom })).toStrictEqual({ request, countedFrom });
});

test('the copy is that of the store below, over any number of backends', () => {
  const layer = { ...grant, fencingToken: 8n, atStore: grant };
  expect(copiedGrant({ ...layer, atStore: layer })).toStrictEqual(grant);
});
