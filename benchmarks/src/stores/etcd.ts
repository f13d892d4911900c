import { startEtcd } from '@locks/test-servers';
import { meterOf } from '../measure/meter.ts';
import { describedServer, type Store } from './store.ts';

const RECEIVED = /^grpc_server_msg_received_total\{grpc_method="(\w+)",[^}]*\} ([\d.e+]+)$/gm;

export const etcdStore: Store = {
  id: 'etcd',
  counting:
    '`/metrics`, `grpc_server_msg_received_total`: every call, and every message on a stream (watches, keep-alives)',
  async start() {
    return await describedServer(await startEtcd(), async (server) => {
      return {
        url: server.url,
        meter: meterOf({
          async read() {
            const response = await fetch(`${server.url}/metrics`, { signal: AbortSignal.timeout(5_000) });
            const counts = new Map<string, number>();
            for (const [, method = '', count] of (await response.text()).matchAll(RECEIVED)) {
              counts.set(method, (counts.get(method) ?? 0) + Number(count));
            }
            return counts;
          },
          // It is no call of gRPC.
          ownOperations: 0,
        }),
        network: {
          addresses: [server],
          urlAt: ([at]) => `http://${at?.host}:${at?.port}`,
        },
        async storedBytes() {
          const response = await fetch(`${server.url}/metrics`, { signal: AbortSignal.timeout(5_000) });
          return Number(/^process_resident_memory_bytes (\S+)/m.exec(await response.text())?.[1]);
        },
        versions: { etcd: (await server.status()).version },
      };
    });
  },
};
