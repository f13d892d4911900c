import type { Socket } from 'node:net';
import { type ConnectionContext, ProxyConnection } from '@locks/core/conformance/proxy';
import { type Frame, FrameReader } from '../redis/resp.ts';

export interface RedisRequest {
  /** In upper case. */
  readonly command: string;
  readonly args: readonly string[];
  readonly connection: RedisProxyConnection;
}

export interface LoseOptions {
  readonly only?: (connection: RedisProxyConnection) => boolean;
  /** Cut the connection right after the reply was swallowed: a client then reconnects, and may send the command again. */
  readonly thenCut?: boolean;
  /** How many replies to lose. @defaultValue Infinity */
  readonly times?: number;
}

/** What a connection reports to its proxy, and asks it. */
export interface RequestWatch {
  onRequest(request: RedisRequest): void;
  /** Whether the reply to this request gets lost; counts it as lost if so. */
  loses(request: RedisRequest): LoseOptions | undefined;
}

const SUBSCRIBE_COMMANDS = new Set([
  'SUBSCRIBE',
  'PSUBSCRIBE',
  'SSUBSCRIBE',
  'UNSUBSCRIBE',
  'PUNSUBSCRIBE',
  'SUNSUBSCRIBE',
]);
const PUSHED_KINDS = new Set(
  [...SUBSCRIBE_COMMANDS, 'MESSAGE', 'PMESSAGE', 'SMESSAGE'].map((name) => name.toLowerCase()),
);

/** One Redis client's connection through the proxy, which counts the commands and may lose single replies. */
export class RedisProxyConnection extends ProxyConnection {
  /** Commands of the client so far. */
  requests = 0;
  /** Whether the client ever subscribed here. */
  sawSubscribe = false;
  readonly #watch: RequestWatch | undefined;
  readonly #readers = { toServer: new FrameReader(), toClient: new FrameReader() };
  /** Requests whose replies are still to come, oldest first. */
  readonly #unanswered: RedisRequest[] = [];
  /** Bytes are passed on unread: so it was asked for, or the stream was not Redis's protocol. */
  #raw: boolean;

  /** Without `watch` bytes are passed on unread. */
  constructor(
    id: number,
    client: Socket,
    context: ConnectionContext<RedisProxyConnection>,
    watch: RequestWatch | undefined,
  ) {
    super(id, client, context as ConnectionContext<ProxyConnection>);
    this.#watch = watch;
    this.#raw = watch === undefined;
  }

  protected override fromClient(chunk: Buffer): void {
    // Requests are noted before they are passed on, so that a fault for subscribers meets the subscription itself.
    for (const frame of this.#frames('toServer', chunk)) this.#noteRequest(frame);
    this.passToServer(chunk);
  }

  protected override fromServer(chunk: Buffer): void {
    if (this.#raw) {
      this.passToClient(chunk);
      return;
    }
    const frames = this.#frames('toClient', chunk);
    let kept: Buffer[] = [];
    const passKept = () => {
      if (kept.length > 0) this.passToClient(Buffer.concat(kept));
      kept = [];
    };
    for (const frame of frames) {
      const request = isPushed(frame, this.sawSubscribe) ? undefined : this.#unanswered.shift();
      const loss = this.isSilent ? undefined : request && this.#watch?.loses(request);
      if (!loss) {
        kept.push(frame.raw);
        continue;
      }
      passKept();
      // The client would take later replies for the lost one: from here on it hears nothing on this connection.
      this.silence();
      if (loss.thenCut) this.cut();
    }
    passKept();
    if (this.#raw) this.passToClient(this.#readers.toClient.takeRest());
  }

  #noteRequest(frame: Frame): void {
    if (!Array.isArray(frame.value) || frame.value.length === 0) return;
    const [name, ...args] = frame.value.map(String);
    const request = { command: String(name).toUpperCase(), args, connection: this };
    this.requests += 1;
    if (SUBSCRIBE_COMMANDS.has(request.command)) this.sawSubscribe = true;
    else this.#unanswered.push(request);
    this.#watch?.onRequest(request);
  }

  /** The frames that the chunk completes; none from the first one on that is not Redis's protocol. */
  #frames(direction: 'toServer' | 'toClient', chunk: Buffer): Frame[] {
    if (this.#raw) return [];
    try {
      return this.#readers[direction].push(chunk);
    } catch {
      this.#raw = true;
      return [];
    }
  }
}

function isPushed(frame: Frame, subscriber: boolean): boolean {
  if (frame.type === '>') return true;
  return subscriber && Array.isArray(frame.value) && PUSHED_KINDS.has(String(frame.value[0]).toLowerCase());
}
