import { Buffer } from 'node:buffer';
import type { NodeStat } from '@locks/zookeeper';
import library, { type Client } from 'node-zookeeper-client';

export type Write =
  | { readonly kind: 'create'; readonly path: string; readonly flags: number; readonly data: string }
  | { readonly kind: 'remove'; readonly path: string; readonly version: number };

/** What a test asks of a server: the answer, or the number of the refusal. */
export type Command =
  | Write
  | { readonly kind: 'transaction'; readonly writes: readonly Write[] }
  | { readonly kind: 'children'; readonly path: string }
  | { readonly kind: 'read'; readonly path: string; readonly watches: boolean };

/** Names of sessions, and the transaction from which both servers count. */
export class ServerNames {
  readonly #sessions = new Map<string, string>([['0000000000000000', 'nobody']]);
  #firstZxid: bigint | undefined;

  add(id: string, name: string): void {
    this.#sessions.set(id, name);
  }

  stat({ czxid, pzxid, version, cversion, ephemeralOwner }: NodeStat): unknown {
    const owner = ephemeralOwner.toString('hex');
    return {
      czxid: this.#zxid(czxid),
      pzxid: this.#zxid(pzxid),
      version,
      cversion,
      owner: this.#sessions.get(owner) ?? owner,
    };
  }

  #zxid(bytes: Buffer): number {
    const zxid = bytes.readBigInt64BE();
    this.#firstZxid ??= zxid;
    return Number(zxid - this.#firstZxid);
  }
}

/** A session at a server, and all that it was told, in that order. */
export class ComparedSession {
  readonly heard: unknown[] = [];
  readonly client: Client;
  readonly #names: ServerNames;

  private constructor(client: Client, names: ServerNames) {
    this.client = client;
    this.#names = names;
  }

  static async open(
    servers: string,
    name: string,
    names: ServerNames,
    sessionTimeout = 20_000,
  ): Promise<ComparedSession> {
    const client = library.createClient(servers, { sessionTimeout, spinDelay: 10, retries: 0 });
    const session = new ComparedSession(client, names);
    client.on('expired', () => session.heard.push('expired'));
    await new Promise<void>((resolve) => {
      client.once('connected', resolve);
      client.connect();
    });
    names.add(client.getSessionId().toString('hex'), name);
    return session;
  }

  ask(command: Command): Promise<void> {
    return new Promise((resolve) => {
      const done = (error: { readonly code: number } | null, answer?: unknown): void => {
        // Of a transaction that is refused there are numbers for each part.
        this.heard.push([command.kind, error?.code ?? answer, ...(error && answer ? [answer] : [])]);
        resolve();
      };
      this.#send(command, done);
    });
  }

  /** Ends the session; its connection is gone then. */
  async end(): Promise<void> {
    const { socket } = this.client.connectionManager;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    this.client.close();
    await closed;
  }

  /** Its connection breaks, and it connects again. */
  async reconnect(): Promise<void> {
    const connected = new Promise<void>((resolve) => void this.client.once('connected', resolve));
    this.client.connectionManager.socket.destroy();
    await connected;
  }

  /** It is silent until {@link speak}. */
  async fallSilent(): Promise<() => void> {
    const manager = this.client.connectionManager;
    const { connect } = manager;
    manager.connect = () => {};
    const closed = new Promise((resolve) => manager.socket.once('close', resolve));
    manager.socket.destroy();
    await closed;
    return () => {
      manager.connect = connect;
      manager.connect();
    };
  }

  #send(command: Command, done: (error: { readonly code: number } | null, answer?: unknown) => void): void {
    const { client } = this;
    switch (command.kind) {
      case 'create':
        return client.create(command.path, Buffer.from(command.data), command.flags, done);
      case 'remove':
        return client.remove(command.path, command.version, done);
      case 'transaction': {
        const transaction = client.transaction();
        for (const write of command.writes)
          if (write.kind === 'create') transaction.create(write.path, Buffer.from(write.data), write.flags);
          else transaction.remove(write.path, write.version);
        return transaction.commit(done);
      }
      case 'children':
        return client.getChildren(command.path, (error, names, stat) =>
          done(error, error ? undefined : [[...names].toSorted(), this.#names.stat(stat)]),
        );
      case 'read': {
        const watcher = command.watches
          ? ({ type, path }: { readonly type: number; readonly path: string }) =>
              this.heard.push(['watch', type, path])
          : undefined;
        const answer = (
          error: { readonly code: number } | null,
          data: Buffer | undefined,
          stat: NodeStat,
        ): void => done(error, error ? undefined : [String(data ?? ''), this.#names.stat(stat)]);
        return watcher === undefined
          ? client.getData(command.path, answer)
          : client.getData(command.path, watcher, answer);
      }
      default:
        command satisfies never;
    }
  }
}
