import { connect, type Socket } from 'node:net';
import { onLines, type Reply } from './kv-server.ts';

/** The request may have run, or not. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

type Hear = (reply: Reply | undefined) => void; // undefined: the connection is gone

/** One connection, opened by the first call and again after it was lost. */
export class KvClient {
  readonly #host: string;
  readonly #port: number;
  readonly #hears = new Map<number, Hear>();
  #socket: Socket | undefined;
  #lastId = 0;
  #closed = false;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  get(key: string): Promise<Reply> {
    return this.#ask({ op: 'get', key });
  }

  put(key: string, value: string | null, revision: number): Promise<Reply> {
    return this.#ask({ op: 'put', key, value, revision });
  }

  /** Calls `hear` with the present value, at every change, and at the end of the connection. Returns a function that ends the watch. */
  watch(key: string, hear: Hear): () => void {
    const id = this.#send({ op: 'watch', key }, hear);
    return () => {
      if (this.#hears.delete(id) && !this.#closed)
        this.#ask({ op: 'unwatch', key, revision: id }).catch(() => {});
    };
  }

  close(): void {
    this.#closed = true; // a later call opens no connection
    this.#socket?.destroy();
  }

  #ask(request: object): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const id = this.#send(request, (reply) => {
        this.#hears.delete(id);
        if (reply === undefined) reject(new ConnectionLost('no answer: the connection was lost'));
        else resolve(reply);
      });
    });
  }

  #send(request: object, hear: Hear): number {
    if (this.#closed) throw new Error('the backend was closed');
    this.#lastId += 1;
    this.#hears.set(this.#lastId, hear);
    this.#socket ??= this.#connect();
    this.#socket.write(`${JSON.stringify({ ...request, id: this.#lastId })}\n`);
    return this.#lastId;
  }

  #connect(): Socket {
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    socket.unref(); // core keeps the process alive while somebody waits, and only then
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#socket = undefined;
      const hears = [...this.#hears.values()];
      this.#hears.clear();
      for (const hear of hears) hear(undefined);
    });
    onLines(socket, (line) => {
      const reply = JSON.parse(line) as Reply;
      this.#hears.get(reply.id)?.(reply); // a reply that comes twice has no listener any more
    });
    return socket;
  }
}
