import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { natsBackend, type NatsBackendOptions } from '@locks/nats';
import { type NatsCluster, type NatsServer, startNats, startNatsCluster } from '@locks/test-servers';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

export interface LabOptions extends LockOptions {
  readonly backend?: Omit<NatsBackendOptions, 'connection'>;
}

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(): Promise<NatsServer> {
    return this.use(await startNats());
  }

  async cluster(): Promise<NatsCluster> {
    return this.use(await startNatsCluster());
  }

  /** Locks on a connection of their own, as one process has them. */
  async locks(at: Address | string[], { backend, ...options }: LabOptions = {}): Promise<LockManager> {
    const connection = await this.connection(at);
    return this.use(createLocks(natsBackend(connection, { ...backend }), options));
  }

  async connection(at: Address | string[]): Promise<NatsConnection> {
    const connection = await connect({
      servers: 'port' in at ? `nats://${at.host}:${at.port}` : at,
      // The addresses that the servers tell are not those of the proxies.
      ignoreClusterUpdates: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 200,
      // A server that stands still keeps its connections.
      pingInterval: 2_000,
      maxPingOut: 1,
      // It also takes new connections, and answers none: without a limit a reconnect waits for it for 20 s.
      timeout: 1_000,
    });
    this.defer(() => connection.close());
    return connection;
  }
}
