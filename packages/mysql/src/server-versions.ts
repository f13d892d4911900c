import type { ServerVersions } from '@locks/core/doctor';

/** What docs/support.md says of the servers, which the step `versions` of the checks compares. */
export const SERVER_VERSIONS = {
  mariadb: { oldest: '10.5', tested: '10.11' },
  mysql: { oldest: '8.0', tested: '9.7' },
} satisfies Readonly<Record<string, ServerVersions>>;
