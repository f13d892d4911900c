import { errorMonitor } from 'node:events';
import type { Writable } from 'node:stream';
import { clientClosedError, shareListener } from '@locks/core/backend';
import {
  LoginWatch,
  portPerClient,
  type RedisCommand,
  type RedisPort,
  type ShardSubscriptionEvents,
  type SideConnection,
  type SubscriptionEvents,
} from '@locks/redis-protocol';
import { OpenedConnections } from '@locks/redis-protocol/kit';
import { type Cluster, Command, type Redis, type RedisOptions } from 'ioredis';
import { checkClient, type IoredisClient } from './check-client.ts';
import { endWith, openShardSubscriber, openSubscriber } from './subscriber.ts';

type Client = Redis | Cluster;

type Corkable = Pick<Writable, 'cork' | 'uncork'>;

/**
 * The number of commands that are written together. With more, client and server work in turns: with 64 locks at a time the
 * client waited for one long batch of replies after another.
 */
const COMMANDS_TOGETHER = 16;

const REPLY_OPTIONS = { replyEncoding: 'utf8' } as const;

/** The port of an ioredis client. */
export class IoredisPort implements RedisPort {
  readonly name = 'redis-ioredis';
  readonly cluster: boolean;
  readonly isPolled = false;
  readonly keyPrefix: string;
  reconnects = 0;
  readonly repeatsRefused: boolean;
  readonly #client: Client;
  readonly #opened = new OpenedConnections();
  /** Each ends a listener. */
  readonly #listening = new Set<() => void>();
  readonly #onLost = (): void => {
    this.reconnects++;
    // The client emits an error only where its user listens to errors.
    const { errored } = (this.#client as { stream?: { errored?: Error | null } }).stream ?? {};
    if (errored) this.#onError(errored);
  };
  readonly #login = new LoginWatch();
  #isClientClosed: boolean | undefined;
  readonly #onError = (error: unknown): void => {
    if (this.#client.status !== 'ready') this.#login.failed(error);
  };
  #corked: Corkable | undefined;
  #Command: typeof Command | undefined;
  #together = 0;
  readonly #uncork = (): void => {
    this.#corked?.uncork();
    this.#corked = undefined;
  };
  readonly #onNode = (node: Redis): void => {
    const end = shareListener(node, 'close', this.#onLost);
    this.#listening.add(end);
    // A node that has left the cluster is not kept.
    const forget = shareListener(node, 'end', () => {
      forget();
      end();
      this.#listening.delete(end);
      this.#listening.delete(forget);
    });
    this.#listening.add(forget);
  };

  constructor(client: Client) {
    this.#client = client;
    this.cluster = client.isCluster;
    this.keyPrefix = client.options.keyPrefix ?? '';
    const { reconnectOnError, redisOptions } = client.options as RedisOptions & {
      readonly redisOptions?: RedisOptions;
    };
    this.repeatsRefused = Boolean(reconnectOnError ?? redisOptions?.reconnectOnError);
    this.#listen('close', this.#onLost);
    this.#listen('ready', this.#login.accepted);
    // `errorMonitor` is used, since a listener for errors would keep the client from printing errors that its user does not
    // listen to.
    this.#listen(errorMonitor, this.#onError);
    if (!isCluster(client)) return;
    this.#listen('+node', this.#onNode);
    this.#listen('node error', this.#onError);
    for (const node of client.nodes()) this.#onNode(node);
  }

  #listen(event: string | symbol, listener: (...args: never[]) => void): void {
    this.#listening.add(shareListener(this.#client, event, listener));
  }

  // `sendCommand` skips the option objects and wrappers of the client's own methods. Keys have their prefix already.
  send(_key: string, command: RedisCommand, source?: string): Promise<unknown> {
    const send = (): Promise<unknown> => this.#send(command, this.repeatsRefused ? source : undefined);
    return this.#client.status === 'ready' ? send() : this.#whenReady(send);
  }

  /** Returns the answer of a client that is not ready: it may become ready, unless it has ended or its login is refused. */
  async #whenReady(send: () => Promise<unknown>): Promise<unknown> {
    if (this.isClientClosed()) throw clientClosedError();
    if (this.#client.status === 'end') throw this.#login.ended ?? clientClosedError();
    return this.#login.outcomeOf(send);
  }

  isClientClosed(): boolean {
    // The flag is missing in the types of ioredis. A closed `Cluster` goes on from the status `end` to `close`.
    const client: unknown = this.#client;
    const { status, manuallyClosing } = client as { status: string; manuallyClosing?: boolean };
    if (this.cluster) return manuallyClosing === true && (status === 'end' || status === 'close');
    if (status !== 'end') return false;
    // An error of the connection before the end means that the client has given up by itself; later ones mean nothing.
    return (this.#isClientClosed ??= this.#login.ended === undefined);
  }

  connectionError(): unknown {
    return this.#client.status === 'ready' ? undefined : this.#login.lastError;
  }

  #send(command: RedisCommand, source: string | undefined): Promise<unknown> {
    this.#cork();
    const sent = this.#commandOf(command);
    if (source !== undefined) this.#repeatWith(sent, command, source);
    if (!this.cluster) return this.#client.sendCommand(sent) as Promise<unknown>;
    const { reject } = sent;
    const answer = this.#client.sendCommand(sent) as Promise<unknown>;
    // The client reports a slot that is being migrated only after 16 tries, 100 ms apart; a release cannot wait so long.
    const redirect = sent.reject;
    sent.reject = (error) => (error.message.startsWith('TRYAGAIN') ? reject : redirect).call(sent, error);
    return answer;
  }

  /**
   * Lets a script be sent again with its source. With `reconnectOnError: () => 2` the client connects anew after `NOSCRIPT` and sends the
   * same command again: by its hash the script would be unknown each time.
   */
  #repeatWith(sent: Command, [, , ...rest]: RedisCommand, source: string): void {
    const write = sent.toWritable.bind(sent);
    let sendings = 0;
    sent.toWritable = (socket) => {
      sendings += 1;
      return sendings === 1 ? write(socket) : this.#commandOf(['EVAL', source, ...rest]).toWritable(socket);
    };
  }

  // The client makes a system call for each command, which is most of the cost when many locks are taken at once. So
  // commands of one iteration of the event loop are written together, at its end at the latest, unless the client is idle.
  #cork(): void {
    if (this.#corked !== undefined) {
      this.#together += 1;
      if (this.#together % COMMANDS_TOGETHER !== 0) return;
      this.#corked.uncork();
      this.#corked.cork();
      return;
    }
    const { stream, commandQueue } = this.#client as unknown as {
      stream?: Corkable;
      commandQueue?: { length: number };
    };
    if (stream === undefined || commandQueue === undefined || commandQueue.length === 0) return;
    this.#corked = stream;
    this.#together = 0;
    stream.cork();
    process.nextTick(this.#uncork);
  }

  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[] {
    const nodes: readonly Client[] = isCluster(this.#client) ? this.#client.nodes('master') : [this.#client];
    return nodes.map((node) => (command) => {
      const send = () => node.sendCommand(this.#commandOf(command)) as Promise<unknown>;
      return this.#client.status === 'ready' ? send() : this.#whenReady(send);
    });
  }

  #commandOf([name, ...args]: RedisCommand): Command {
    const OwnCommand = this.#Command ?? this.#findCommand();
    return new OwnCommand(name, args, REPLY_OPTIONS);
  }

  /** The `Command` of the client's own copy of ioredis: versions 5 and 6 cannot send each other's commands. */
  #findCommand(): typeof Command {
    const node = isCluster(this.#client) ? this.#client.nodes()[0] : this.#client;
    const found =
      (node?.constructor as { readonly Command?: typeof Command } | undefined)?.Command ?? Command;
    // A cluster client that has not connected has no node yet.
    if (node !== undefined) this.#Command = found;
    return found;
  }

  subscribe(channel: string, events: SubscriptionEvents): Promise<void> {
    return this.#opened.whenReady(openSubscriber(this.#client, channel, events));
  }

  masterOf(slot: number): string | undefined {
    return (this.#client as Cluster).slots[slot]?.[0];
  }

  async subscribeAt(master: string, channel: string, events: ShardSubscriptionEvents): Promise<void> {
    const nodes = isCluster(this.#client) ? this.#client.nodes() : [];
    const node = nodes.find(({ options: { host, port } }) => `${host}:${port}` === master);
    if (node === undefined) throw new Error(`no connection to ${master}`);
    const lost = (): void => {
      this.#opened.forget(subscriber.close);
      events.lost();
    };
    const subscriber = openShardSubscriber(node, channel, { ...events, lost });
    await this.#opened.whenReady(subscriber);
  }

  openSide(): Promise<SideConnection> {
    if (isCluster(this.#client)) return Promise.reject(new TypeError('a cluster has no side connection'));
    const side = this.#client.duplicate({
      enableOfflineQueue: true,
      autoResubscribe: false,
      lazyConnect: false,
    });
    side.on('error', () => undefined); // The commands of this connection reject by themselves.
    const close = endWith(this.#client, side);
    this.#opened.add(close);
    return Promise.resolve({
      send: (command) => side.sendCommand(this.#commandOf(command)) as Promise<unknown>,
      close: () => {
        this.#opened.forget(close);
        close();
      },
    });
  }

  close(): Promise<void> {
    this.#opened.close();
    for (const end of this.#listening) end();
    this.#listening.clear();
    return Promise.resolve();
  }
}

function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}

/**
 * The port of a client that functions are called with.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export const portOf: (client: IoredisClient) => IoredisPort = portPerClient((client) => {
  checkClient(client);
  return new IoredisPort(client as unknown as Client);
});
