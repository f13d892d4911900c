import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  etcd: { oldest: '3.4', tested: '3.4' },
} satisfies Readonly<Record<string, ServerVersions>>;
