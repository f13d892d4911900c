import { createLocks } from '@locks/core';
import { natsBackend } from '@locks/nats';
import { connect } from '@nats-io/transport-node';

/** Does the work under the lock `report`, in a bucket of NATS JetStream. */
export async function reportByNats<T>(servers: string, work: () => Promise<T>): Promise<T> {
  const connection = await connect({ servers, maxReconnectAttempts: -1, pingInterval: 3_000 });
  const locks = createLocks(natsBackend(connection));
  try {
    return await locks.lock('report').run(work, { waitMs: 10_000 });
  } finally {
    await locks.close();
    await connection.close();
  }
}
