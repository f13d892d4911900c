import { Agent as PlainAgent, type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent, request as tlsRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import type { KubeConfig } from '@kubernetes/client-node';
import { timeInHeaders } from '@locks/record-protocol';
import { isNetworkError, type KubeStatus, KubeStatusError } from './kube-error.ts';

/** More requests than these wait for a connection. */
const CONNECTIONS = 32;
/** After this time without a request a connection is closed. An idle one keeps no process alive. */
const IDLE_MS = 15_000;
/** After this silence the system asks whether the other side is there, once a second; ten unanswered questions end the connection. */
const KEEP_ALIVE_MS = 10_000;

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
}

/** An answer of success. */
export interface KubeAnswer<T> {
  readonly body: T;
  /** The time of the API server that answered, in milliseconds since 1970; `undefined` where it tells none. */
  readonly now: number | undefined;
}

/** Connections to the same server with the same credentials are shared by all backends of the process. */
const SHARED = { keepAlive: true, maxSockets: CONNECTIONS, timeout: IDLE_MS };
const tlsAgent = new Agent(SHARED);
const plainAgent = new PlainAgent(SHARED);

/** Sends requests with the credentials of a `KubeConfig`. The clients of `@kubernetes/client-node` connect anew for each. */
export class KubeApi {
  readonly #config: KubeConfig;
  #down: unknown;

  constructor(config: KubeConfig) {
    this.#config = config;
  }

  /** Why the last request had no answer; `undefined` after an answer. */
  get connectionError(): unknown {
    return this.#down;
  }

  /** @throws KubeStatusError for an answer other than success */
  async send<T>(request: KubeRequest): Promise<KubeAnswer<T>> {
    const answer = await this.#answer(request, true);
    return { body: JSON.parse(await text(answer)) as T, now: timeInHeaders(answer.headers) };
  }

  /** The body of an answer that goes on, on a connection of its own. */
  async open(request: KubeRequest): Promise<IncomingMessage> {
    return await this.#answer(request, false);
  }

  async #answer(request: KubeRequest, isShared: boolean): Promise<IncomingMessage> {
    let response: IncomingMessage;
    try {
      response = await this.#begin(request, isShared);
      this.#down = undefined;
    } catch (error) {
      if (isNetworkError(error) && !request.signal.aborted) this.#down = error;
      throw error;
    }
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    throw new KubeStatusError(statusCode, statusIn(await text(response)), timeInHeaders(response.headers));
  }

  /** Resolves with the head of the answer. */
  async #begin(
    { method, path, query, body, signal }: KubeRequest,
    isShared: boolean,
  ): Promise<IncomingMessage> {
    const cluster = this.#config.getCurrentCluster();
    const url = new URL(`${cluster?.server.replace(/\/$/, '')}${path}`);
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
    const credentials: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(credentials as never);
    const isTls = url.protocol === 'https:';
    const { headers, agent: viaProxy, ...tls } = credentials;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const options: RequestOptions = {
      ...tls,
      method,
      signal,
      headers: {
        ...(headers as Record<string, string>),
        accept: 'application/json',
        ...(payload && { 'content-type': 'application/json', 'content-length': payload.length }),
      },
      agent: isShared && (isTls ? tlsAgent : plainAgent),
      ...(cluster?.proxyUrl !== undefined && { agent: viaProxy }),
    };
    return await new Promise((resolve, reject) => {
      const send = isTls ? tlsRequest : plainRequest;
      const sent = send(url, options, resolve);
      sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
      sent.once('error', reject);
      sent.end(payload);
    });
  }
}

function statusIn(body: string): KubeStatus {
  try {
    return JSON.parse(body) as KubeStatus;
  } catch {
    // What stands between: a proxy, or an API server that has no time for more than a word.
    return { message: body.trim().slice(0, 200) };
  }
}
