import { parseArgs } from 'node:util';
import { rehearse } from '../../release/rehearsal/rehearse.ts';
import type { Step } from '../step.ts';

/** `npm run release:rehearsal`, and its short form. */
export const releaseSteps: readonly Step[] = [
  {
    name: 'release',
    about:
      'a release to a private registry, its installation with npm, SBOM and licences, an upgrade on SQLite and Redis',
    // The leases of the upgrade are as short as in the other applications.
    kind: 'timed',
    uses: ['redis'],
    run: ({ missing }) => rehearse({ quick: true, missing }),
  },
  {
    name: 'release:rehearsal',
    about:
      'all of a release (docs/releasing.md): npm run release:rehearsal [-- --before COMMIT] [-- --sbom FILE]',
    kind: 'alone',
    onlyWhenNamed: true,
    uses: ['redis', 'postgres', 'mysql', 'zookeeper', 'etcd'],
    async run({ missing, testArguments }) {
      const options = { before: { type: 'string' }, sbom: { type: 'string' } } as const;
      const { values } = parseArgs({ args: [...testArguments], options });
      return rehearse({ quick: false, missing, ...values });
    },
  },
];
