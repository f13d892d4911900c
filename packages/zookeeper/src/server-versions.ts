import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  zookeeper: { oldest: '3.5', tested: '3.8' },
} satisfies Readonly<Record<string, ServerVersions>>;
