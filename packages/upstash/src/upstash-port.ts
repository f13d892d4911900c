import { readOptions } from '@locks/core/backend';
import type { NodeSender, RedisCommand, RedisPort, SideConnection } from '@locks/redis-protocol';
import {
  type CheckedConnection,
  CONNECTION_TABLE,
  refuseClients,
  type UpstashConnection,
} from './connection.ts';
import { RestClient } from './rest-client.ts';

/** The port of the REST API: it has no messages, and no connection of its own. */
export class UpstashPort implements RedisPort {
  readonly name = 'upstash';
  readonly cluster = false;
  readonly isPolled = true;
  readonly repeatsRefused = false;
  readonly keyPrefix = '';
  /** Stays 0: no request is sent twice. */
  readonly reconnects = 0;
  readonly #client: RestClient;

  constructor(connection: CheckedConnection) {
    this.#client = new RestClient(connection);
  }

  send(_key: string, command: RedisCommand): Promise<unknown> {
    return this.#client.send(command);
  }

  masters(): readonly NodeSender[] {
    return [(command) => this.#client.send(command)];
  }

  subscribe(): Promise<void> {
    return Promise.reject(new TypeError('the REST API has no messages'));
  }

  openSide(): Promise<SideConnection> {
    return Promise.reject(new TypeError('the REST API has no connections'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/**
 * The port of what is called with the address of a database.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function portOf(caller: string, database: UpstashConnection): UpstashPort {
  refuseClients(database);
  return new UpstashPort(readOptions(caller, database, CONNECTION_TABLE));
}
