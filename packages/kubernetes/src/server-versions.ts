import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  kubernetes: { oldest: '1.19', tested: '1.34' },
} satisfies Readonly<Record<string, ServerVersions>>;
