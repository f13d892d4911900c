import type { RequestLimit } from '@locks/record-protocol';
import { type NatsOptions, type NatsServer, startNats } from '@locks/test-servers';
import { connect, type ConnectionOptions, type NatsConnection } from '@nats-io/transport-node';
import { onTestFinished } from 'vitest';
import { NatsStore } from '../src/nats-store.ts';
import { checkOptions, type NatsBackendOptions } from '../src/options.ts';

export const limit: RequestLimit = { timeoutMs: 5_000, signal: new AbortController().signal };

export async function startedNats(options?: NatsOptions): Promise<NatsServer> {
  const server = await startNats(options);
  onTestFinished(() => server.stop());
  return server;
}

export async function connectionTo(
  servers: string | string[],
  more: ConnectionOptions = {},
): Promise<NatsConnection> {
  const connection = await connect({ servers, reconnectTimeWait: 50, maxReconnectAttempts: -1, ...more });
  onTestFinished(() => connection.close());
  return connection;
}

export function storeOn(connection: NatsConnection, options: NatsBackendOptions = {}): NatsStore {
  const store = new NatsStore(checkOptions(connection, options));
  onTestFinished(() => store.close());
  return store;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The text and version of a record. */
export async function valueOf(
  store: NatsStore,
  key: string,
): Promise<readonly [string, unknown] | undefined> {
  const [record] = (await store.read([key], limit)).records;
  return record && [new TextDecoder().decode(record.value), record.version];
}

export async function put(
  store: NatsStore,
  key: string,
  text: string | undefined,
  ifVersion?: unknown,
  isIdle = false,
) {
  const value = text === undefined ? undefined : bytes(text);
  return await store.write({ key, value, ifVersion: ifVersion as number | undefined, isIdle }, limit);
}

/** The version that a write gave. */
export async function versionOf(written: ReturnType<typeof put>): Promise<number> {
  const outcome = await written;
  if (outcome.status !== 'written') throw new Error(outcome.status);
  return Number(outcome.version);
}
