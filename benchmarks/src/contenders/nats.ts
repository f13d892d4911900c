import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/nats-core';
import { countConflict, countSent } from '../measure/client-counts.ts';
import { backend } from './clients.ts';
import { type Client, type Contender, foreign, ours, pauseBetweenPolls, TTL_MS } from './contender.ts';

const store = 'nats';
/** Errors of JetStream: the key has another revision. */
const WRONG_LAST_SEQUENCE: ReadonlySet<unknown> = new Set([10_071, 10_164]);

const client: Client<NatsConnection> = {
  packages: ['@nats-io/transport-node'],
  async connect(servers) {
    const { connect } = await import('@nats-io/transport-node');
    const opened = counting(await connect({ servers }));
    return { client: opened, ping: () => opened.flush(), close: () => opened.close() };
  },
};

/** Counts the requests of a connection, and its subscriptions. */
function counting(connection: NatsConnection): NatsConnection {
  const request = connection.request.bind(connection);
  connection.request = async (subject, payload, options) => {
    countSent(kindOf(subject, payload));
    const answer = await request(subject, payload, options);
    if (WRONG_LAST_SEQUENCE.has(errorIn(answer.data))) countConflict();
    return answer;
  };
  const subscribe = connection.subscribe.bind(connection);
  connection.subscribe = (subject, ...rest) => {
    countSent('SUB');
    return subscribe(subject, ...rest);
  };
  return connection;
}

/** `STREAM.MSG.GET` of `$JS.API.STREAM.MSG.GET.KV_locks`, and whether it is about a heartbeat. */
function kindOf(subject: string, payload: unknown): string {
  const kind = subject.startsWith('$JS.API.')
    ? (/[A-Z]{2,}(?:\.[A-Z]{2,})*(?=\.|$)/.exec(subject.slice(8))?.[0] ?? subject)
    : 'PUB';
  const isHeartbeat = `${subject} ${typeof payload === 'string' ? payload : ''}`.includes('/client/');
  return isHeartbeat ? `${kind} of heartbeats` : kind;
}

function errorIn(data: Uint8Array): unknown {
  const text = new TextDecoder().decode(data);
  if (!text.includes('"error"')) return undefined;
  return (JSON.parse(text) as { error?: { err_code?: unknown } }).error?.err_code;
}

/** A key of a bucket that must not be there, and its deletion by the revision. No token, and no queue. */
const rawCreate = foreign(
  { store, name: 'raw create', kind: 'floor', packages: ['@nats-io/kv'] },
  client,
  async (connection) => {
    const { Kvm } = await import('@nats-io/kv');
    const locks = await new Kvm(connection).create('raw', { ttl: TTL_MS });
    return async (name) => {
      const key = Buffer.from(name).toString('base64url');
      const owner = randomUUID();
      const take = async (): Promise<number | undefined> => {
        try {
          return await locks.create(key, owner);
        } catch (error) {
          if (WRONG_LAST_SEQUENCE.has((error as { code?: unknown }).code)) return undefined;
          throw error;
        }
      };
      for (;;) {
        const previousSeq = await take();
        if (previousSeq !== undefined) return () => locks.delete(key, { previousSeq });
        await pauseBetweenPolls();
      }
    };
  },
);

export const natsContenders: readonly Contender[] = [
  rawCreate,
  ours(
    { store, name: '@locks/nats', floor: rawCreate.name },
    backend('@locks/nats', client, async (connection) =>
      (await import('@locks/nats')).natsBackend(connection),
    ),
  ),
];
