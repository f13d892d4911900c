import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  redis: { oldest: '6.2', tested: '6.2' },
} satisfies Readonly<Record<string, ServerVersions>>;
