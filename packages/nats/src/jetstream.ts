import { setTimeout as sleep } from 'node:timers/promises';
import { headers } from '@nats-io/nats-core';
import { type ErrorAnswer, hasNoResponders, JetStreamError } from './jetstream-error.ts';
import type { Link, LinkRequest } from './link.ts';

/** A message as `STREAM.MSG.GET` gives it: headers and data in base64. */
export interface StoredMessage {
  readonly seq: number;
  readonly data?: string;
  readonly hdrs?: string;
}

/** The configuration of a stream, as far as it matters here. */
export interface StreamConfig {
  readonly storage?: string;
  readonly max_age?: number;
  readonly max_msg_size?: number;
  readonly discard?: string;
  readonly mirror?: object;
  readonly subjects?: readonly string[];
  readonly allow_msg_ttl?: boolean;
  readonly num_replicas?: number;
  readonly republish?: { readonly src?: string; readonly dest: string };
}

export interface StreamInfo {
  readonly config: StreamConfig;
  /** The time of the server at this answer; servers before 2.10 do not tell it. */
  readonly ts?: string;
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
  /** Of the subjects; absent where they are all in this answer. */
  readonly total?: number;
}

/**
 * The longest wait for an answer, in milliseconds. A request that was sent to a server without a leader is answered by nobody, and one
 * sent again by the next leader.
 */
const REQUEST_MS = 2_000;
/** How often and after how long, in milliseconds, a message is sent again that nobody has received: a bucket that was just made. */
const TRIES = 4;
const PAUSE_MS = 100;

/**
 * The few requests of JetStream's wire API that locks need. `@nats-io/jetstream` would serve a part of them only with fixed time
 * limits, and repeats by itself what the backend repeats anyway.
 */
export class JetStream {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  async api<T>(call: string, body?: object, timeoutMs = REQUEST_MS): Promise<T> {
    const payload = body === undefined ? '' : JSON.stringify(body);
    return await this.#request<T>({ subject: `$JS.API.${call}`, payload, timeoutMs });
  }

  /**
   * Stores a message if the last one on its subject has the sequence number `last`; 0: if there is none. Gives its own number.
   */
  async publish(
    subject: string,
    payload: Uint8Array,
    last: number,
    more: Readonly<Record<string, string>>,
    timeoutMs: number,
  ): Promise<number> {
    const given = headers();
    given.set('Nats-Expected-Last-Subject-Sequence', String(last));
    for (const [name, value] of Object.entries(more)) given.set(name, value);
    for (let tries = 1; ; tries += 1) {
      try {
        return (await this.#request<{ seq: number }>({ subject, payload, headers: given, timeoutMs })).seq;
      } catch (error) {
        if (tries === TRIES || !hasNoResponders(error)) throw error;
      }
      await sleep(PAUSE_MS);
    }
  }

  async #request<T>(request: LinkRequest): Promise<T> {
    const timeoutMs = Math.min(request.timeoutMs, REQUEST_MS);
    const { data } = await this.#link.request({ ...request, timeoutMs });
    const answer = JSON.parse(new TextDecoder().decode(data)) as T & { readonly error?: ErrorAnswer };
    if (answer.error !== undefined) throw new JetStreamError(answer.error);
    return answer;
  }
}
