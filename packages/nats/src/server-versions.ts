import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  nats: { oldest: '2.11', tested: '2.15' },
} satisfies Readonly<Record<string, ServerVersions>>;
