import { error, type Finding, found } from '@locks/core/doctor';
import type { Document } from 'mongodb';

/** The findings about a collection, as the server lists it. */
export function collectionFindings({ options = {}, type }: Document & { options?: Document }): Finding[] {
  const { collation, capped } = options;
  return found(
    collation !== undefined &&
      collation['locale'] !== 'simple' &&
      error(
        'mongodb/collation',
        `the collection compares texts by the collation ${collation['locale']}: names that differ may be one lock`,
        'give the locks a collection without a collation',
      ),
    (capped === true || type === 'timeseries' || type === 'view') &&
      error(
        'mongodb/collection',
        `the collection is ${capped === true ? 'capped' : `a ${type}`}: it loses records, or takes no writes`,
        'give the locks a plain collection of their own',
      ),
  );
}
