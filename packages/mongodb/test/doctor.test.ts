import { expect, it } from 'vitest';
import { collectionFindings } from '../src/collection-findings.ts';

// The server of the tests makes no such collections: these are the answers that MongoDB documents for `listCollections`.
it.each([
  [{ type: 'collection', options: {} }, []],
  [{ type: 'collection', options: { collation: { locale: 'simple' } } }, []],
  [{ type: 'collection', options: { collation: { locale: 'en', strength: 2 } } }, ['mongodb/collation']],
  [{ type: 'collection', options: { capped: true, size: 4_096 } }, ['mongodb/collection']],
  [{ type: 'timeseries', options: { timeseries: { timeField: 'at' } } }, ['mongodb/collection']],
  [{ type: 'view', options: { viewOn: 'other', pipeline: [] } }, ['mongodb/collection']],
])('finds in a collection that is listed as %j: %j', (listed, ids) => {
  const findings = collectionFindings({ name: 'locks', ...listed });
  expect(findings.map(({ id, severity }) => ({ id, severity }))).toEqual(
    ids.map((id) => ({ id, severity: 'error' })),
  );
});
