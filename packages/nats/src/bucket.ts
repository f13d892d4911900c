import type { NatsConnection } from '@nats-io/nats-core';
import type { JetStream, StreamConfig, StreamInfo } from './jetstream.ts';
import {
  BucketError,
  hasNoResponders,
  isDenied,
  isNotEnabled,
  JetStreamError,
  OTHER_CONFIGURATION,
  STREAM_NOT_FOUND,
  TOO_MANY_REPLICAS,
} from './jetstream-error.ts';
import type { CheckedNatsOptions } from './options.ts';

/** What is known of a bucket that was found. */
interface OpenedBucket {
  readonly config: StreamConfig;
  /** The server's time, in milliseconds since 1970. */
  readonly now: number | undefined;
}

/** The stream of a bucket: found or made at the first call, checked, and looked for again when it seems to be gone. */
export class Bucket {
  readonly stream: string;
  readonly #jetStream: JetStream;
  readonly #connection: NatsConnection;
  readonly #options: CheckedNatsOptions;
  #opening: Promise<OpenedBucket> | undefined;

  constructor(jetStream: JetStream, options: CheckedNatsOptions) {
    this.stream = `KV_${options.bucket}`;
    this.#jetStream = jetStream;
    this.#connection = options.connection;
    this.#options = options;
  }

  /**
   * Gives the configuration of the bucket, and the server's time to the call that has looked for the bucket: for a later one that is of
   * the past.
   */
  async open(): Promise<OpenedBucket> {
    const isFirst = this.#opening === undefined;
    this.#opening ??= this.#open(this.#options.autoPrepare);
    try {
      const { config, now } = await this.#opening;
      return { config, now: isFirst ? now : undefined };
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Makes the bucket where it is missing, also where the first call of the locks may not. */
  async prepare(): Promise<void> {
    this.#opening = this.#open(true);
    await this.open();
  }

  /** The server's time, in milliseconds since 1970, after this call; `undefined` where the server tells none. */
  async askTime(): Promise<number | undefined> {
    const { now } = await this.open();
    if (now !== undefined) return now;
    return timeOf(await this.#find());
  }

  forget(): void {
    this.#opening = undefined;
  }

  /** The subject on which a record is stored. */
  subjectOf(key: string): string {
    return `$KV.${this.#options.bucket}.${key}`;
  }

  /** The subject on which the server tells that a record was stored, and whether that is told after it, not before. */
  toldOn(key: string, { republish }: StreamConfig): { readonly subject: string; readonly isAfter: boolean } {
    const own = this.subjectOf('>');
    if (republish?.dest.endsWith('.>') && (republish.src === own || republish.src === '>')) {
      const rest = republish.src === own ? key : this.subjectOf(key);
      return { subject: `${republish.dest.slice(0, -1)}${rest}`, isAfter: true };
    }
    return { subject: this.subjectOf(key), isAfter: false };
  }

  async #open(mayMake: boolean): Promise<OpenedBucket> {
    try {
      const info = await this.#findOrMake(mayMake);
      const now = timeOf(info);
      this.#check(info.config);
      if (now === undefined && this.#options.expiry === 'clock') throw new BucketError(TELLS_NO_TIME);
      return { config: info.config, now };
    } catch (error) {
      throw this.#explained(error);
    }
  }

  async #findOrMake(mayMake: boolean): Promise<StreamInfo> {
    try {
      return await this.#find();
    } catch (error) {
      if (!isMissing(error) || !mayMake) throw error;
    }
    try {
      return await this.#jetStream.api<StreamInfo>(`STREAM.CREATE.${this.stream}`, this.#wanted());
    } catch (error) {
      // Another process made it meanwhile, with other options.
      if (error instanceof JetStreamError && error.code === OTHER_CONFIGURATION) return await this.#find();
      throw error;
    }
  }

  async #find(): Promise<StreamInfo> {
    return await this.#jetStream.api<StreamInfo>(`STREAM.INFO.${this.stream}`);
  }

  /** What the clients of NATS make of a bucket, but with changes told after they were stored, and without direct reads. */
  #wanted(): object {
    const { bucket } = this.#options;
    return {
      name: this.stream,
      subjects: [this.subjectOf('>')],
      retention: 'limits',
      storage: 'file',
      num_replicas: this.#replicas,
      max_msgs_per_subject: 1,
      max_msgs: -1,
      max_bytes: -1,
      max_age: 0,
      max_msg_size: -1,
      discard: 'new',
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: false,
      allow_msg_ttl: true,
      republish: { src: this.subjectOf('>'), dest: `KV_CHANGED.${bucket}.>`, headers_only: true },
    };
  }

  get #replicas(): number {
    return this.#options.replicas ?? (this.#connection.info?.cluster === undefined ? 1 : 3);
  }

  /** A bucket that loses records would let two hold, or let tokens go back. */
  #check(config: StreamConfig): void {
    const faults = faultsOf(config);
    if (faults.length > 0) {
      throw new BucketError(`the bucket ${this.#options.bucket} ${faults.join(', and ')}; ${this.#toDo()}`);
    }
  }

  #explained(error: unknown): unknown {
    const { bucket } = this.#options;
    if (isNotEnabled(error) || (hasNoResponders(error) && this.#connection.info?.jetstream !== true)) {
      const message = 'JetStream is not enabled: start the server with -js, and enable it for the account';
      return new BucketError(message, { cause: error });
    }
    if (error instanceof JetStreamError && TOO_MANY_REPLICAS.has(error.code)) {
      const message =
        `the bucket ${bucket} cannot be made with ${this.#replicas} replicas, which need as many servers with JetStream in a cluster: ` +
        `pass fewer replicas to natsBackend(). The server said: ${error.message}`;
      return new BucketError(message, { cause: error });
    }
    if (isMissing(error)) {
      return new BucketError(`there is no bucket ${bucket}; ${this.#toDo()}`, { cause: error });
    }
    if (isDenied(error)) {
      const message = `this user may not look for the bucket ${bucket} or make it: ${(error as Error).message}; ${this.#toDo()}`;
      return new BucketError(message, { cause: error });
    }
    return error;
  }

  #toDo(): string {
    const { bucket } = this.#options;
    return (
      `call prepare() of the locks as a user with the right to publish to $JS.API.STREAM.CREATE.${this.stream}, or run "nats kv add ${bucket} --history=1 --storage=file --replicas=3 ` +
      `--republish-source='$KV.${bucket}.>' --republish-destination='KV_CHANGED.${bucket}.>' --republish-headers"`
    );
  }
}

const TELLS_NO_TIME =
  "the NATS server tells no time, which servers do from 2.10 on: take a newer one, or pass expiry: 'observed' to natsBackend() in all " +
  'processes. Then a process that lives or waits for less than the ttl never gets the lock of a dead holder';

function timeOf({ ts = '' }: StreamInfo): number | undefined {
  const time = Date.parse(ts);
  return Number.isNaN(time) ? undefined : time;
}

/** What makes a bucket unfit for locks. */
export function faultsOf({ max_age: maxAge = 0, storage, mirror, discard }: StreamConfig): string[] {
  return [
    maxAge !== 0 && 'deletes records by their age (ttl)',
    storage === 'memory' && 'is kept in memory, so that fencing tokens would go back after a restart',
    mirror !== undefined && 'is a mirror, which may be behind',
    discard === 'old' && 'deletes old records when it is full (discard: old)',
  ].filter((fault) => fault !== false);
}

function isMissing(error: unknown): boolean {
  return error instanceof JetStreamError && error.code === STREAM_NOT_FOUND;
}
