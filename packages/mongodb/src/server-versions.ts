import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  mongodb: { oldest: '4.4', tested: '4.4' },
} satisfies Readonly<Record<string, ServerVersions>>;
