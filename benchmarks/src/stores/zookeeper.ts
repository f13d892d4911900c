import { startZookeeper } from '@locks/test-servers';
import { meterOf, type OperationCounter } from '../measure/meter.ts';
import { describedServer, type Store } from './store.ts';

export const zookeeperStore: Store = {
  id: 'zookeeper',
  counting: '`mntr`, `zk_packets_received`: the requests of clients, pings of idle sessions included',
  async start() {
    return await describedServer(await startZookeeper(), async (server) => {
      const read: OperationCounter['read'] = async () =>
        new Map([['requests', await server.figure('packets_received')]]);
      // A four letter word is counted as a packet, or is not: nobody else is there yet.
      const [first, second] = [await read(), await read()];
      const own = (second.get('requests') ?? 0) - (first.get('requests') ?? 0);
      const version = /version: ([\d.]+)/.exec(await server.report('srvr'))?.[1] ?? 'unknown';
      return {
        url: server.address,
        meter: meterOf({ read, ownOperations: own, ownKind: 'requests' }),
        network: {
          addresses: [server],
          urlAt: ([at]) => `${at?.host}:${at?.port}`,
        },
        storedBytes: () => server.figure('approximate_data_size'),
        versions: { zookeeper: version },
      };
    });
  },
};
