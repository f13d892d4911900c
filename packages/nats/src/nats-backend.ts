import type { NatsConnection } from '@nats-io/nats-core';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import type { LockBackend } from '@locks/core/backend';
import { NatsStore } from './nats-store.ts';
import { checkOptions, type NatsBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { natsBackend } from '@locks/nats'; import { connect } from '@nats-io/transport-node';
/**
 * Makes a backend that keeps locks in a bucket of NATS JetStream.
 *
 * @param connection - a connection of `@nats-io/transport-node`, or of another transport of NATS, which the backend never closes
 * @example
 * ```ts
 * const connection = await connect({ servers: ['nats://10.0.0.1:4222'], maxReconnectAttempts: -1 });
 * const locks = createLocks(natsBackend(connection));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function natsBackend(
  connection: NatsConnection,
  options?: NatsBackendOptions,
): LockBackend<RecordCapabilities> {
  const checked = checkOptions(connection, options);
  return createRecordBackend(new NatsStore(checked), { prefix: checked.prefix });
}
