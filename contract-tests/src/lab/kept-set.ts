import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** What a client of the kept set asks. */
type SetRequest =
  | { readonly do: 'read'; readonly set: string; readonly token?: string | undefined }
  | {
      readonly do: 'write';
      readonly set: string;
      readonly elements: readonly string[];
      readonly added: string;
      readonly token?: string | undefined;
    };

/** `undefined`: the token was lower than one that came before. */
type SetReply = { readonly elements: readonly string[] | undefined };

interface KeptValue {
  elements: readonly string[];
  highestToken: bigint;
  /** Every element whose write was acknowledged. */
  readonly acknowledged: string[];
}

/**
 * Sets that are kept outside of the store of the locks, and that no fault reaches: what a lock protects. A client reads a whole set and
 * writes it back with one more element. With tokens, the lower of two is refused, at reads too: who has read under a lower token must not
 * write after anyone who has read under a higher one.
 */
export class SetKeeper implements AsyncDisposable {
  readonly #values = new Map<string, KeptValue>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    const lines = createInterface({ input: socket });
    // A killed worker resets its connection.
    lines.on('error', () => undefined);
    lines.on('line', (line) => {
      socket.write(`${JSON.stringify(this.answer(JSON.parse(line) as SetRequest))}\n`);
    });
  });

  /**
   * @param path - of a socket, for clients in other networks. Default: a port of 127.0.0.1
   * @returns where it listens
   */
  async listen(path?: string): Promise<number | string> {
    if (path === undefined) this.#server.listen(0, '127.0.0.1');
    else this.#server.listen(path);
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null) throw new Error('The kept set does not listen.');
    return typeof address === 'string' ? address : address.port;
  }

  answer(request: SetRequest): SetReply {
    const value = this.#value(request.set);
    if (request.token !== undefined) {
      const token = BigInt(request.token);
      if (token < value.highestToken) return { elements: undefined };
      value.highestToken = token;
    }
    if (request.do === 'write') {
      value.elements = request.elements;
      value.acknowledged.push(request.added);
    }
    return { elements: request.do === 'read' ? value.elements : [] };
  }

  /** How many elements were acknowledged, and are not there. */
  lost(set: string): number {
    const { elements, acknowledged } = this.#value(set);
    const kept = new Set(elements);
    return acknowledged.filter((element) => !kept.has(element)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #value(set: string): KeptValue {
    let value = this.#values.get(set);
    if (value === undefined)
      this.#values.set(set, (value = { elements: [], highestToken: 0n, acknowledged: [] }));
    return value;
  }
}

/** A connection to a {@link SetKeeper}; requests are answered in their order. */
export class SetClient {
  readonly #socket: Socket;
  readonly #waiting: ((reply: SetReply) => void)[] = [];

  constructor(at: number | string) {
    this.#socket = typeof at === 'string' ? connect(at) : connect(at, '127.0.0.1');
    createInterface({ input: this.#socket }).on('line', (line) =>
      this.#waiting.shift()?.(JSON.parse(line) as SetReply),
    );
  }

  /**
   * Adds an element to a set as a program does that trusts its lock: reads, works, and writes without looking at the lease again.
   * Resolves with false where a token was refused.
   */
  async add(set: string, added: string, work: () => Promise<unknown>, token?: string): Promise<boolean> {
    const { elements } = await this.#ask({ do: 'read', set, token });
    await work();
    if (elements === undefined) return false;
    const reply = await this.#ask({ do: 'write', set, elements: [...elements, added], added, token });
    return reply.elements !== undefined;
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(request: SetRequest): Promise<SetReply> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#socket.write(`${JSON.stringify(request)}\n`);
    });
  }
}
