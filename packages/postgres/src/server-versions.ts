import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  postgres: { oldest: '12', tested: '15' },
} satisfies Readonly<Record<string, ServerVersions>>;
