/** How many cases of the suite run at once on a backend where more would take too much CPU. */
export const casesAtOnce: Readonly<Record<string, number>> = {
  // The local server answers some 250 writes a second.
  dynamodb: 4,
  // Every step of etcd and of its client costs more CPU than those of the other stores.
  etcd: 5,
  'etcd-cluster': 5,
  // Its server in Java costs more CPU than the others.
  mongodb: 5,
  // Three servers share the machine with the clients.
  'nats-cluster': 6,
  // The client of MySQL costs more CPU than those of the other stores.
  mysql: 6,
  // PGlite runs in the thread of the tests.
  pglite: 3,
  // A server in Python.
  s3: 3,
  's3-seaweedfs': 4,
  // Three servers share the machine with the clients.
  'zookeeper-ensemble': 6,
  // The more connections the native library opens at once, the more it forgets.
  'zookeeper-native': 6,
};
