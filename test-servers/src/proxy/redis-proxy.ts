import { type Address, Proxy } from '@locks/core/conformance/proxy';
import {
  type LoseOptions,
  RedisProxyConnection,
  type RedisRequest,
  type RequestWatch,
} from './redis-proxy-connection.ts';

type Loss = { match: (request: RedisRequest) => boolean; options: LoseOptions; left: number };

/** The proxy of the conformance suite, which also counts Redis's commands and loses the replies to single ones. */
export class RedisProxy extends Proxy<RedisProxyConnection> {
  /** How many replies `loseReplies` has swallowed. */
  lostReplies = 0;
  #counts = new Map<string, number>();
  readonly #watchers = new Set<(request: RedisRequest) => void>();
  #losses: Loss[] = [];

  constructor(target: Address, port: number, protocol: 'redis' | 'raw') {
    const watch: RequestWatch = {
      onRequest: (request) => this.#noteRequest(request),
      loses: (request) => this.#loses(request),
    };
    super(
      target,
      port,
      (id, client, context) =>
        new RedisProxyConnection(id, client, context, protocol === 'redis' ? watch : undefined),
    );
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /**
   * The commands run, their replies never arrive. After the first lost reply its connection passes nothing more to the
   * client, which would take later replies for the lost one; commands on it still reach the server.
   */
  loseReplies(match: (request: RedisRequest) => boolean = () => true, options: LoseOptions = {}): void {
    this.#losses.push({ match, options, left: options.times ?? Number.POSITIVE_INFINITY });
  }

  /** Ends every connection with RST. */
  reset(): void {
    this.cut();
  }

  override async heal(): Promise<void> {
    this.#losses = [];
    await super.heal();
  }

  /** How many commands clients have sent, of one name or in all, since the start or `resetCounts`. */
  countRequests(command?: string): number {
    if (command !== undefined) return this.#counts.get(command.toUpperCase()) ?? 0;
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Commands sent by name, since the start or `resetCounts`. */
  requestCounts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  resetCounts(): void {
    this.#counts = new Map();
  }

  /** Calls `watch` for every command, as it arrives and before it is passed on. Gives the function that ends it. */
  onRequest(watch: (request: RedisRequest) => void): () => void {
    this.#watchers.add(watch);
    return () => {
      this.#watchers.delete(watch);
    };
  }

  #noteRequest(request: RedisRequest): void {
    this.#counts.set(request.command, (this.#counts.get(request.command) ?? 0) + 1);
    for (const watch of this.#watchers) watch(request);
  }

  #loses(request: RedisRequest): LoseOptions | undefined {
    const loss = this.#losses.find(
      ({ match, options, left }) =>
        left > 0 && (options.only?.(request.connection) ?? true) && match(request),
    );
    if (loss === undefined) return undefined;
    loss.left -= 1;
    this.lostReplies += 1;
    return loss.options;
  }
}
