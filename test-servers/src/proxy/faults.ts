import type { ProxyConnection, ProxyRequest } from './proxy-connection.ts';

export type Direction = 'toServer' | 'toClient';

/** Which traffic a fault meets. Read anew for every piece of data, so it also meets connections made later. */
export interface FaultScope {
  /** @defaultValue both */
  readonly direction?: Direction;
  /** @defaultValue every connection */
  readonly only?: (connection: ProxyConnection) => boolean;
}

export interface LoseOptions {
  readonly only?: (connection: ProxyConnection) => boolean;
  /** Cut the connection right after the reply was swallowed: a client then reconnects, and may send the command again. */
  readonly thenCut?: boolean;
  /** How many replies to lose. @defaultValue Infinity */
  readonly times?: number;
}

/** What is wrong with the network just now; one object for all connections of a proxy. */
export class Faults {
  #latencies: { ms: number; scope: FaultScope }[] = [];
  #blackholes: FaultScope[] = [];
  #stalls: FaultScope[] = [];
  #losses: { match: (request: ProxyRequest) => boolean; options: LoseOptions; left: number }[] = [];

  addLatency(ms: number, scope: FaultScope): void {
    this.#latencies.push({ ms, scope });
  }

  addBlackhole(scope: FaultScope): void {
    this.#blackholes.push(scope);
  }

  addStall(scope: FaultScope): void {
    this.#stalls.push(scope);
  }

  addLoss(match: (request: ProxyRequest) => boolean, options: LoseOptions): void {
    this.#losses.push({ match, options, left: options.times ?? Number.POSITIVE_INFINITY });
  }

  clear(): void {
    this.#latencies = [];
    this.#blackholes = [];
    this.#stalls = [];
    this.#losses = [];
  }

  latencyMs(connection: ProxyConnection, direction: Direction): number {
    const meeting = this.#latencies.filter(({ scope }) => meets(scope, connection, direction));
    return meeting.reduce((sum, { ms }) => sum + ms, 0);
  }

  swallows(connection: ProxyConnection, direction: Direction): boolean {
    return this.#blackholes.some((scope) => meets(scope, connection, direction));
  }

  stalls(connection: ProxyConnection, direction: Direction): boolean {
    return this.#stalls.some((scope) => meets(scope, connection, direction));
  }

  /** Whether the reply to this request gets lost; counts it as lost if so. */
  loses(connection: ProxyConnection, request: ProxyRequest): LoseOptions | undefined {
    const loss = this.#losses.find(
      ({ match, options, left }) => left > 0 && (options.only?.(connection) ?? true) && match(request),
    );
    if (loss) loss.left -= 1;
    return loss?.options;
  }
}

function meets(scope: FaultScope, connection: ProxyConnection, direction: Direction): boolean {
  return (scope.direction ?? direction) === direction && (scope.only?.(connection) ?? true);
}
