import { connect, type Socket } from 'node:net';
import { FrameReader, type Frame } from '../redis/resp.ts';
import { Delivery } from './delivery.ts';
import type { Direction, Faults } from './faults.ts';

export interface ProxyRequest {
  /** In upper case. */
  readonly command: string;
  readonly args: readonly string[];
  readonly connection: ProxyConnection;
}

export interface ConnectionContext {
  readonly target: { readonly host: string; readonly port: number };
  readonly faults: Faults;
  /** `raw`: bytes are passed on without being looked at. */
  readonly protocol: 'redis' | 'raw';
  onRequest(request: ProxyRequest): void;
  onReplyLost(): void;
  onClose(connection: ProxyConnection): void;
}

const SUBSCRIBING = new Set([
  'SUBSCRIBE',
  'PSUBSCRIBE',
  'SSUBSCRIBE',
  'UNSUBSCRIBE',
  'PUNSUBSCRIBE',
  'SUNSUBSCRIBE',
]);
const PUSHED = new Set([...SUBSCRIBING, 'MESSAGE', 'PMESSAGE', 'SMESSAGE'].map((name) => name.toLowerCase()));

/** One client's connection through the proxy. */
export class ProxyConnection {
  /** Counts up from 1 in the order of arrival. */
  readonly id: number;
  /** Commands of the client so far. */
  requests = 0;
  /** Whether the client ever subscribed here. */
  sawSubscribe = false;
  readonly #context: ConnectionContext;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #toServer: Delivery;
  readonly #toClient: Delivery;
  readonly #readers = { toServer: new FrameReader(), toClient: new FrameReader() };
  /** Requests whose replies are still to come, oldest first. */
  readonly #unanswered: ProxyRequest[] = [];
  #raw: boolean;
  #open = true;

  constructor(id: number, client: Socket, context: ConnectionContext) {
    this.id = id;
    this.#context = context;
    this.#raw = context.protocol === 'raw';
    this.#client = client;
    this.#server = connect({ ...context.target, noDelay: true, allowHalfOpen: true });
    client.setNoDelay(true);
    this.#toServer = this.#delivery('toServer', this.#server);
    this.#toClient = this.#delivery('toClient', client);
    this.#listen(client, this.#toServer, (chunk) => {
      this.#passRequests(chunk);
    });
    this.#listen(this.#server, this.#toClient, (chunk) => {
      this.#passReplies(chunk);
    });
  }

  /** Ends both sides, with RST. */
  cut(): void {
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
    this.#close();
  }

  /** The faults are over. A connection of which bytes were swallowed cannot go on: it is cut. */
  heal(): void {
    if (this.#toServer.damaged || this.#toClient.damaged) this.cut();
    this.#toServer.flush();
    this.#toClient.flush();
  }

  #delivery(direction: Direction, to: Socket): Delivery {
    const { faults } = this.#context;
    return new Delivery(to, {
      latencyMs: () => faults.latencyMs(this, direction),
      swallows: () => faults.swallows(this, direction),
      stalls: () => faults.stalls(this, direction),
    });
  }

  #listen(from: Socket, onward: Delivery, pass: (chunk: Buffer) => void): void {
    from.on('data', pass);
    from.on('end', () => {
      onward.pass('end');
    });
    from.on('error', () => undefined);
    from.on('close', (hadError) => {
      // An end crosses the network like data: it may be late, or never arrive.
      if (hadError) onward.pass('end');
      if (this.#client.destroyed && this.#server.destroyed) this.#close();
    });
  }

  #passRequests(chunk: Buffer): void {
    for (const frame of this.#frames('toServer', chunk)) this.#noteRequest(frame);
    // Noted first, so that a fault for subscribers meets the subscription itself.
    this.#toServer.pass(chunk);
  }

  #noteRequest(frame: Frame): void {
    if (!Array.isArray(frame.value) || frame.value.length === 0) return;
    const [name, ...args] = frame.value.map(String);
    const request = { command: String(name).toUpperCase(), args, connection: this };
    this.requests += 1;
    if (SUBSCRIBING.has(request.command)) this.sawSubscribe = true;
    else this.#unanswered.push(request);
    this.#context.onRequest(request);
  }

  #passReplies(chunk: Buffer): void {
    if (this.#raw) {
      this.#toClient.pass(chunk);
      return;
    }
    const frames = this.#frames('toClient', chunk);
    let kept: Buffer[] = [];
    const passKept = () => {
      if (kept.length > 0) this.#toClient.pass(Buffer.concat(kept));
      kept = [];
    };
    for (const frame of frames) {
      const request = isPushed(frame, this.sawSubscribe) ? undefined : this.#unanswered.shift();
      const loss = this.#toClient.damaged ? undefined : request && this.#context.faults.loses(this, request);
      if (!loss) {
        kept.push(frame.raw);
        continue;
      }
      passKept();
      // Later replies would be taken for this one: from here on the client hears nothing on this connection.
      this.#toClient.damaged = true;
      this.#context.onReplyLost();
      if (loss.thenCut) this.cut();
    }
    passKept();
    if (this.#raw) this.#toClient.pass(this.#readers.toClient.takeRest());
  }

  /** The frames that the chunk completes; none, and never again, when this is not Redis's protocol. */
  #frames(direction: Direction, chunk: Buffer): Frame[] {
    if (this.#raw) return [];
    try {
      return this.#readers[direction].push(chunk);
    } catch {
      this.#raw = true;
      return [];
    }
  }

  #close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#toServer.stop();
    this.#toClient.stop();
    this.#context.onClose(this);
  }
}

function isPushed(frame: Frame, subscriber: boolean): boolean {
  if (frame.type === '>') return true;
  return subscriber && Array.isArray(frame.value) && PUSHED.has(String(frame.value[0]).toLowerCase());
}
