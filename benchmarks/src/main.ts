// `bench <suite> [options]`. A suite is a function of its arguments that gives the exit code.
import { allSuite } from './suites/all.ts';
import { clusterSuite } from './suites/cluster.ts';
import { cohortSuite } from './suites/cohorts.ts';
import { crowdsSuite } from './suites/crowds.ts';
import { filesSuite } from './suites/files.ts';
import { growthSuite } from './suites/growth.ts';
import { kindsSuite } from './suites/kinds.ts';
import { recordsSuite } from './suites/records.ts';
import { redisSuite } from './suites/redis.ts';
import { renewalThreadSuite } from './suites/renewal-thread.ts';
import { sizingSuite } from './suites/sizing.ts';
import { runStoreSuite, suiteOf } from './suites/stores.ts';
import { telemetrySuite } from './suites/telemetry.ts';
import { etcdStore } from './stores/etcd.ts';
import { languagesSuite } from './suites/languages.ts';
import { mysqlStore } from './stores/mysql.ts';
import { postgresStore } from './stores/postgres.ts';
import { zookeeperStore } from './stores/zookeeper.ts';

const suites: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  redis: (args) => runStoreSuite(redisSuite, args),
  postgres: (args) => runStoreSuite(suiteOf(postgresStore), args),
  mysql: (args) => runStoreSuite(suiteOf(mysqlStore), args),
  zookeeper: (args) => runStoreSuite(suiteOf(zookeeperStore), args),
  etcd: (args) => runStoreSuite(suiteOf(etcdStore), args),
  kinds: (args) => runStoreSuite(kindsSuite, args),
  files: (args) => runStoreSuite(filesSuite, args),
  records: recordsSuite,
  cohorts: cohortSuite,
  growth: growthSuite,
  sizing: sizingSuite,
  languages: languagesSuite,
  telemetry: telemetrySuite,
  'renewal-thread': renewalThreadSuite,
  cluster: clusterSuite,
  crowds: crowdsSuite,
  all: allSuite,
};

// An orderly exit ends servers and client processes at once; otherwise they notice later that this process is gone.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.once(signal, () => process.exit(code));
}

const [name = '', ...args] = process.argv.slice(2);
const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;

if (suite === undefined) {
  console.error(
    `usage: bench <suite> [options]; suites: ${Object.keys(suites).join(', ')}; more with --help`,
  );
  process.exitCode = 2;
} else {
  process.exitCode = await suite(args);
}
