import type { Msg, MsgHdrs, NatsConnection, Status } from '@nats-io/nats-core';

/** The connection to the server is down, or broke before the answer to a request came: that may have been carried out. */
export class DisconnectedError extends Error {
  override readonly name = 'DisconnectedError';
}

export interface LinkRequest {
  readonly subject: string;
  readonly payload: Uint8Array | string;
  readonly headers?: MsgHdrs;
  /** In milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Requests over a connection that may break. The client drops what it has not sent when it reconnects, and leaves requests without an
 * answer to their time limits. Here they fail when the connection breaks, and wait for it while it is down.
 */
export class Link {
  readonly #connection: NatsConnection;
  readonly #status: AsyncIterable<Status> & { stop?(): void };
  readonly #unanswered = new Set<(error: Error) => void>();
  readonly #waiting = new Set<() => void>();
  #isDown = false;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
    this.#status = connection.status();
    void this.#follow();
  }

  /** The reason why no request would be sent now. */
  get error(): Error | undefined {
    if (this.#connection.isClosed()) return new Error('the NATS connection is closed');
    return this.#isDown ? new DisconnectedError('the connection to NATS is down') : undefined;
  }

  async request({ subject, payload, headers, timeoutMs }: LinkRequest): Promise<Msg> {
    const deadline = performance.now() + timeoutMs;
    if (this.#isDown) await this.#untilUp(timeoutMs);
    if (this.#isDown) throw new DisconnectedError('the connection to NATS is down');
    const timeout = Math.max(1, Math.ceil(deadline - performance.now()));
    const options = { timeout, ...(headers !== undefined && { headers }) };
    return await new Promise<Msg>((resolve, reject) => {
      this.#unanswered.add(reject);
      const end = () => this.#unanswered.delete(reject);
      this.#connection.request(subject, payload, options).finally(end).then(resolve, reject);
    });
  }

  /** Follows the connection no more; it stays open. */
  close(): void {
    this.#status.stop?.();
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#status) {
      if (type === 'disconnect') this.#fall();
      if (type === 'reconnect') this.#rise();
    }
    // The connection was closed, or this link was.
    this.#rise();
  }

  #fall(): void {
    this.#isDown = true;
    const error = new DisconnectedError('the connection to NATS broke');
    for (const reject of this.#unanswered) reject(error);
    this.#unanswered.clear();
  }

  #rise(): void {
    this.#isDown = false;
    for (const go of this.#waiting) go();
    this.#waiting.clear();
  }

  async #untilUp(timeoutMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const go = () => {
        clearTimeout(timer);
        this.#waiting.delete(go);
        resolve();
      };
      const timer = setTimeout(go, timeoutMs);
      this.#waiting.add(go);
    });
  }
}
