import { rehearse } from '../../release/rehearsal/rehearse.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';

/** The short form of `npm run release:rehearsal`. */
export const releaseStep: Step = {
  name: 'release',
  about:
    'a release to a private registry, its installation with npm, SBOM and licences, an upgrade on SQLite and Redis; all of it: `npm run release:rehearsal`',
  // The leases of the upgrade are as short as in the other applications.
  kind: 'timed',
  uses: ['redis'],
  async run({ missing }) {
    const outcomes = await rehearse({
      quick: true,
      before: undefined,
      sbom: undefined,
      missing,
      onStep: () => {},
    });
    const absent = outcomes.filter(({ outcome }) => outcome === 'absent');
    return resultOf(
      outcomes.map(({ name, outcome, note }) => ({ name, problem: outcome === 'failed' ? note : undefined })),
      absent.map(({ name, note }) => `${name}: ${note}`),
    );
  },
};
