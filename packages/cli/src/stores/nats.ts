import { LockError } from '@locks/core';
import { natsBackend, natsSlots } from '@locks/nats';
import { examineNats } from '@locks/nats/doctor';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { decoded, type StoreUrl } from '../store-url.ts';
import type { OpenBackend } from './open-backend.ts';

const CONNECT_MS = 5_000;

/** `nats://USER:PASSWORD@HOST:PORT,HOST:PORT/BUCKET`. */
export async function openNats({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const [, login, hosts = '', path = ''] = /^[^:]+:\/\/(?:([^/?]*)@)?([^/?]*)\/?([^?]*)/.exec(text) ?? [];
  const bucket = decoded(path);
  const connection = await connectTo(hosts.split(','), login);
  const options = {
    ...(bucket !== '' && { bucket }),
    ...(prefix !== undefined && { prefix }),
  };
  return {
    backend: natsBackend(connection, options),
    openSlots: async () => natsSlots(connection, options),
    closeClient: () => connection.close(),
    examine: () => examineNats(connection, options),
  };
}

async function connectTo(servers: string[], login: string | undefined): Promise<NatsConnection> {
  const [user, ...password] = (login ?? '').split(':').map(decoded);
  try {
    return await connect({
      servers,
      timeout: CONNECT_MS,
      // A command may hold a lock for hours, while servers come and go.
      maxReconnectAttempts: -1,
      ...(user !== undefined && user !== '' && { user, pass: password.join(':') }),
    });
  } catch (error) {
    const says = `nats cannot be reached: ${(error as Error).message}`;
    throw new LockError('LOCK_BACKEND', says, { cause: error });
  }
}
