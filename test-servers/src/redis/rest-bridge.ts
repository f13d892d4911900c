import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Address } from '@locks/core/conformance/proxy';
import { encodeCommand, FrameReader, RedisReplyError, type RespValue } from './resp.ts';

/** An HTTP server before a Redis server, with the REST API of Upstash: `POST /` a command, `POST /pipeline` several. */
export interface RestBridge extends Address, AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** The number of commands that came so far. */
  readonly commands: number;
  /** The number of HTTP requests so far. */
  readonly requests: number;
  stop(): Promise<void>;
}

type Answer = { readonly result: RespValue } | { readonly error: string };

/** Starts a bridge on a free port of 127.0.0.1. */
export async function startRestBridge(redis: Address): Promise<RestBridge> {
  const token = 'token-of-the-bridge';
  const counts = { commands: 0, requests: 0 };
  const connection = new BridgeConnection(redis);
  const answerTo = async (request: IncomingMessage): Promise<{ status: number; body: unknown }> => {
    if (request.headers.authorization !== `Bearer ${token}`) {
      return { status: 401, body: { error: 'Unauthorized' } };
    }
    try {
      const sent = JSON.parse(await bodyOf(request)) as string[] | string[][];
      const isPipeline = request.url === '/pipeline';
      const commands = (isPipeline ? sent : [sent]) as string[][];
      counts.requests += 1;
      counts.commands += commands.length;
      const answers = await Promise.all(commands.map((command) => connection.send(command)));
      if (isPipeline) return { status: 200, body: answers };
      const [answer] = answers as [Answer];
      return { status: 'error' in answer ? 400 : 200, body: answer };
    } catch (error) {
      return { status: 502, body: { error: String(error) } };
    }
  };
  const server = createServer((request, response) => {
    void answerTo(request).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    connection.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    host: '127.0.0.1',
    port,
    url: `http://127.0.0.1:${port}`,
    token,
    get commands() {
      return counts.commands;
    },
    get requests() {
      return counts.requests;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** One connection to the server, opened again by the next command after it was lost. */
class BridgeConnection {
  readonly #redis: Address;
  #socket: Socket | undefined;
  #waiting: Waiting[] = [];

  constructor(redis: Address) {
    this.#redis = redis;
  }

  send(command: readonly string[]): Promise<Answer> {
    this.#socket ??= this.#open();
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      socket.write(encodeCommand(command));
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const { host, port } = this.#redis;
    const socket = connect({ host, port, noDelay: true });
    const reader = new FrameReader();
    socket.on('data', (chunk) => {
      for (const { value } of reader.push(chunk)) {
        const answer = value instanceof RedisReplyError ? { error: value.message } : { result: plain(value) };
        this.#waiting.shift()?.resolve(answer);
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const lost = this.#waiting;
      this.#waiting = [];
      this.#socket = undefined;
      for (const { reject } of lost) reject(new Error('the connection to the server was lost'));
    });
    return socket;
  }
}

/** Errors inside a reply, as the check of several resources has them, become texts. */
function plain(value: RespValue): RespValue {
  if (Array.isArray(value)) return value.map(plain);
  return value instanceof RedisReplyError ? value.message : value;
}
