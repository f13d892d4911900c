import { Acquisitions } from './acquisitions.ts';
import { Claims } from './claims.ts';
import { DirectGrants } from './direct-grants.ts';
import { EtcdPort } from './etcd-port.ts';
import { HoldRenewer } from './hold-renewer.ts';
import { HoldWrites } from './hold-writes.ts';
import { Holdings } from './holdings.ts';
import { KeepAliveStream } from './keep-alive-stream.ts';
import { Keys } from './keys.ts';
import { etcdLayout } from './layout.ts';
import { LeasePool } from './lease-pool.ts';
import { LocalHandOffs } from './local-hand-offs.ts';
import type { CheckedEtcdOptions, EtcdClientSource } from './options.ts';
import { QueueEntrance } from './queue-entrance.ts';
import { ResourceStates } from './resource-states.ts';
import { EtcdWaiterSessions } from './waiter-sessions.ts';
import { WatchStream } from './watch-stream.ts';
import { WatchingWaiters } from './watching-waiters.ts';

export type EtcdParts = ReturnType<typeof composeParts>;

/** Makes the parts of one backend, from the wire upwards: each part knows only parts that are made before it. */
export function composeParts(source: EtcdClientSource, options: CheckedEtcdOptions) {
  const { prefix, waiterTtlSeconds, requestTimeoutMs } = options;
  // The wire: requests, and two streams that all locks share.
  const keys = new Keys(prefix);
  const port = new EtcdPort(source, requestTimeoutMs);
  const layout = etcdLayout(port, keys, requestTimeoutMs);
  const watches = new WatchStream(port);
  const keepAlives = new KeepAliveStream(port, requestTimeoutMs);
  // The owners of the keys: a lease for each hold, one session for all waiters.
  const leases = new LeasePool(port, keepAlives);
  const sessions = new EtcdWaiterSessions(port, keepAlives, keys, waiterTtlSeconds);
  // The acquisitions of this process, and the ways into a resource and out of it.
  const acquisitions = new Acquisitions(keys);
  const writes = new HoldWrites(port, leases, sessions);
  const direct = new DirectGrants(writes);
  const claims = new Claims(port, leases, sessions, writes);
  const entrance = new QueueEntrance(sessions, acquisitions, writes, claims);
  const holdings = new Holdings(port, watches, leases, sessions, acquisitions, keys);
  const renewer = new HoldRenewer(port, leases, holdings, acquisitions, keys);
  const handOffs = new LocalHandOffs(leases, writes);
  const waiters = new WatchingWaiters(port, watches, claims, handOffs, holdings, acquisitions);
  // The only report upwards: the session's heartbeat and loss.
  sessions.reportTo(waiters);
  const states = new ResourceStates(port, keys);
  return {
    keys,
    port,
    layout,
    watches,
    keepAlives,
    leases,
    sessions,
    acquisitions,
    direct,
    entrance,
    holdings,
    renewer,
    waiters,
    states,
  };
}
