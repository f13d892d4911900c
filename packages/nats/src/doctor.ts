import type { NatsConnection } from '@nats-io/nats-core';
import { type Diagnosis, error, type Finding, found, oldVersion, warning } from '@locks/core/doctor';
import { faultsOf } from './bucket.ts';
import { JetStream, type StreamConfig, type StreamInfo } from './jetstream.ts';
import {
  hasNoResponders,
  isDenied,
  isNotEnabled,
  JetStreamError,
  STREAM_NOT_FOUND,
} from './jetstream-error.ts';
import { Link } from './link.ts';
import { type CheckedNatsOptions, checkOptions, type NatsBackendOptions } from './options.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

// setup: import { examineNats } from '@locks/nats/doctor'; import { connect } from '@nats-io/transport-node';
/**
 * Examines the bucket of the locks: whether it loses records, on how many servers it is, and whether it tells of changes. Nothing is
 * written, and no bucket is made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the client as they are
 * @example
 * ```ts
 * const { findings } = await examineNats(await connect());
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineNats(
  connection: NatsConnection,
  options?: NatsBackendOptions,
): Promise<Diagnosis> {
  const checked = checkOptions(connection, options, 'examineNats()');
  const link = new Link(checked.connection);
  try {
    const version = checked.connection.info?.version;
    const { findings, ...more } = await examine(new JetStream(link), checked);
    const age = version !== undefined && oldVersion('nats', version, SERVER_VERSIONS.nats);
    return { store: 'nats', version, findings: [...found(age), ...findings], ...more };
  } finally {
    link.close();
  }
}

async function examine(
  jetStream: JetStream,
  options: CheckedNatsOptions,
): Promise<Pick<Diagnosis, 'findings' | 'isUnused'>> {
  const { bucket, autoPrepare, connection } = options;
  try {
    const { config } = await jetStream.api<StreamInfo>(`STREAM.INFO.KV_${bucket}`);
    return { findings: bucketFindings(config) };
  } catch (cause) {
    if (isNotEnabled(cause) || (hasNoResponders(cause) && connection.info?.jetstream !== true))
      return { findings: [notEnabledFinding()] };
    if (isDenied(cause)) return { findings: [rightsFinding(bucket, cause as Error)] };
    if (!(cause instanceof JetStreamError) || cause.code !== STREAM_NOT_FOUND) throw cause;
    if (autoPrepare) return { findings: [], isUnused: true };
    const what = `there is no bucket ${bucket}`;
    return {
      findings: [error('nats/bucket-missing', what, 'make it: see the page of the backend')],
    };
  }
}

function bucketFindings(config: StreamConfig): Finding[] {
  const { num_replicas: replicas = 1, republish, allow_msg_ttl: canExpire = false } = config;
  return found(
    ...faultsOf(config).map((fault) =>
      error(
        'nats/bucket',
        `the bucket ${fault}: two may hold one lock`,
        'make another bucket for the locks: see the page of the backend',
      ),
    ),
    replicas < 3 &&
      warning(
        'nats/replicas',
        `the bucket is on ${replicas === 1 ? 'one server' : `${replicas} servers`}: while one is away nothing is granted, and a disk that breaks loses the locks`,
        'run three servers, and give the bucket three replicas',
      ),
    republish === undefined &&
      warning(
        'nats/republish',
        'the bucket tells of a change before it is stored: waiters read it a second time',
        'make the bucket with --republish-source, as the page of the backend shows, or let the first lock make it',
      ),
    !canExpire &&
      warning(
        'nats/message-ttl',
        'messages of the bucket cannot expire: the records of names that nobody uses any more stay',
        'use NATS 2.11 or newer, and let the first lock make the bucket',
      ),
  );
}

function notEnabledFinding(): Finding {
  return error(
    'nats/jetstream',
    'JetStream is not enabled',
    'start the server with -js, and enable JetStream for the account',
  );
}

function rightsFinding(bucket: string, { message }: Error): Finding {
  return error(
    'nats/rights',
    `this user may not look for the bucket ${bucket}: ${message}`,
    'give the rights that the page of the backend lists',
  );
}
