import { matching, oneOf, optional, type OptionTable, readOptions } from '../../src/backend/read-options.ts';

/** Which way data goes through the proxy. */
export type Direction = 'toServer' | 'toClient';

/** The data that a fault affects. The scope is checked for every chunk, so it also includes later connections. */
export interface FaultScope<C> {
  /** The direction of the data that is concerned. @defaultValue both */
  readonly direction?: Direction;
  /** Which connections are concerned. @defaultValue every connection */
  readonly only?: (connection: C) => boolean;
}

const SCOPE_TABLE = {
  direction: optional(oneOf('toServer', 'toClient')),
  only: optional(matching('a function', (value) => typeof value === 'function')),
} satisfies OptionTable<FaultScope<never>>;

/** @throws LockError `LOCK_INVALID_ARGUMENT`: a misspelt scope would include everything. */
export function checkScope(caller: string, scope: unknown): void {
  readOptions(caller, scope, SCOPE_TABLE);
}

/**
 * Finds the first reply in the bytes of a server. Gives its length, or 0 while it is not complete.
 *
 * @example
 * ```ts
 * const line = (bytes: Buffer): number => bytes.indexOf('\n') + 1;
 * ```
 */
export type ReplyLength = (bytes: Buffer) => number;

/** The present faults of the network; one object for all connections of a proxy. */
export class NetworkFaults<C extends object> {
  /** Where it is set, every reply arrives twice. */
  repeats: ReplyLength | undefined;
  #latencies: { ms: number; scope: FaultScope<C> }[] = [];
  #blackholes: FaultScope<C>[] = [];
  #stalls: FaultScope<C>[] = [];
  /** The connections that are cut at their next reply. */
  #ending = new WeakSet<C>();

  addLatency(ms: number, scope: FaultScope<C>): void {
    this.#latencies.push({ ms, scope });
  }

  addBlackhole(scope: FaultScope<C>): void {
    this.#blackholes.push(scope);
  }

  addStall(scope: FaultScope<C>): void {
    this.#stalls.push(scope);
  }

  endAtNextReply(connections: readonly C[]): void {
    for (const connection of connections) this.#ending.add(connection);
  }

  clear(): void {
    this.repeats = undefined;
    this.#latencies = [];
    this.#blackholes = [];
    this.#stalls = [];
    this.#ending = new WeakSet();
  }

  latencyMs(connection: C, direction: Direction): number {
    const meeting = this.#latencies.filter(({ scope }) => meets(scope, connection, direction));
    return meeting.reduce((sum, { ms }) => sum + ms, 0);
  }

  swallows(connection: C, direction: Direction): boolean {
    return this.#blackholes.some((scope) => meets(scope, connection, direction));
  }

  stalls(connection: C, direction: Direction): boolean {
    return this.#stalls.some((scope) => meets(scope, connection, direction));
  }

  endsNow(connection: C): boolean {
    return this.#ending.has(connection);
  }
}

function meets<C>(scope: FaultScope<C>, connection: C, direction: Direction): boolean {
  return (scope.direction ?? direction) === direction && (scope.only?.(connection) ?? true);
}
