import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import type { LockBackend } from '@locks/core/backend';
import { NatsStore } from './nats-store.ts';
import { checkOptions, type NatsBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { natsBackend } from '@locks/nats'; import { connect } from '@nats-io/transport-node';
/**
 * Makes a backend that keeps locks in a bucket of NATS JetStream.
 *
 * @example
 * ```ts
 * const connection = await connect({ servers: ['nats://10.0.0.1:4222'], maxReconnectAttempts: -1 });
 * const locks = createLocks(natsBackend({ connection }));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function natsBackend(options: NatsBackendOptions): LockBackend<RecordCapabilities> {
  const checked = checkOptions(options);
  return createRecordBackend(new NatsStore(checked), { prefix: checked.prefix });
}
