import { connect, type Socket } from 'node:net';
import { Delivery } from './delivery.ts';
import type { Direction, NetworkFaults, ReplyLength } from './network-faults.ts';
import { resetSocket } from './reset-socket.ts';

/** The address at which a server or a proxy listens. */
export interface Address {
  /** The name or the address of the machine. */
  readonly host: string;
  /** The port from 1 to 65 535. */
  readonly port: number;
}

/** What the connections of one proxy share. */
export interface ConnectionContext<C extends object> {
  /** The server behind the proxy. */
  readonly target: Address;
  /** The present faults of the network. */
  readonly faults: NetworkFaults<C>;
  /** Called when a connection is closed. */
  onClose(connection: C): void;
}

/** One client's connection through the proxy. */
export class ProxyConnection {
  /** The number of the connection in the order of arrival, from 1. */
  readonly id: number;
  /** How many bytes the client has sent. */
  bytesToServer = 0;
  readonly #context: ConnectionContext<ProxyConnection>;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #toServer: Delivery;
  readonly #toClient: Delivery;
  /** The incomplete beginning of a reply, where replies are repeated. */
  #begun: Buffer = Buffer.alloc(0);
  #open = true;

  constructor(id: number, client: Socket, context: ConnectionContext<ProxyConnection>) {
    this.id = id;
    this.#context = context;
    this.#client = client;
    this.#server = connect({ ...context.target, noDelay: true, allowHalfOpen: true });
    client.setNoDelay(true);
    this.#toServer = this.#delivery('toServer', this.#server);
    this.#toClient = this.#delivery('toClient', client);
    this.#listen(client, this.#toServer, (chunk) => {
      this.bytesToServer += chunk.length;
      this.fromClient(chunk);
    });
    this.#listen(this.#server, this.#toClient, (chunk) => this.#replied(chunk));
  }

  /** Ends both sides, with RST. */
  cut(): void {
    resetSocket(this.#client);
    resetSocket(this.#server);
    this.#close();
  }

  /** Ends the faults. A connection that lost bytes cannot go on and is cut. */
  heal(): void {
    if (this.#toServer.damaged || this.#toClient.damaged) this.cut();
    this.#toServer.flush();
    this.#toClient.flush();
  }

  /** Handles data of the client. A subclass that knows the protocol may change it. */
  protected fromClient(chunk: Buffer): void {
    this.passToServer(chunk);
  }

  /** Handles data of the server. A subclass that knows the protocol may change it. */
  protected fromServer(chunk: Buffer): void {
    this.passToClient(chunk);
  }

  /** Sends data to the server, as the faults let it. */
  protected passToServer(chunk: Buffer): void {
    this.#toServer.pass(chunk);
  }

  /** Sends data to the client, as the faults let it. */
  protected passToClient(chunk: Buffer): void {
    this.#toClient.pass(chunk);
  }

  /** Drops everything that the server sends from now on. */
  protected silence(): void {
    this.#toClient.damaged = true;
  }

  /** Whether data to the client was lost. */
  protected get isSilent(): boolean {
    return this.#toClient.damaged;
  }

  #replied(chunk: Buffer): void {
    const { faults } = this.#context;
    if (faults.endsNow(this)) this.cut();
    else if (faults.repeats === undefined) this.fromServer(chunk);
    else this.#repeat(chunk, faults.repeats);
  }

  #repeat(chunk: Buffer, lengthOf: ReplyLength): void {
    let rest = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    for (let length = lengthOf(rest); length > 0; length = lengthOf(rest)) {
      const reply = rest.subarray(0, length);
      this.passToClient(reply);
      this.passToClient(reply);
      rest = rest.subarray(length);
    }
    this.#begun = rest;
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
    from.on('end', () => onward.pass('end'));
    from.on('error', () => undefined);
    from.on('close', (hadError) => {
      // The end of a connection crosses the network like data: it may be late, or never arrive.
      if (hadError) onward.pass('end');
      if (this.#client.destroyed && this.#server.destroyed) this.#close();
    });
  }

  #close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#toServer.stop();
    this.#toClient.stop();
    this.#context.onClose(this);
  }
}
