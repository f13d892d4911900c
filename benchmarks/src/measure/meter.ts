/** The requests that clients sent while they were counted. */
export interface Counted {
  /** Operations by their kind, in the server's words. */
  readonly sent: ReadonlyMap<string, number>;
  readonly total: number;
  /** Commands that were also called inside scripts: the server's statistics add the two up. */
  readonly alsoInScripts: readonly string[];
  /** Calls inside scripts, which `sent` does not count; where the server tells them apart. */
  readonly callsInScripts?: number;
  /** When each request ran, in milliseconds on the server's clock; where the server tells. */
  readonly times?: readonly number[];
  /** Writes that were refused since another one came first; where the clients count them. */
  readonly conflicts?: number;
}

/** What a server spent between two moments, in microseconds. */
export interface Spent {
  /** In the commands that clients sent. */
  readonly commandMicros: number;
  /** All its processor time, reading and writing of sockets included; where the server reports it. */
  readonly cpuMicros?: number;
}

/** Reads from one kind of server which requests it got and what they cost. */
export interface Meter {
  /** Counts what reaches the server during `work`. It may slow the server: not for timed runs. */
  count<T>(work: () => Promise<T>): Promise<readonly [Counted, T]>;
  /** Starts a timed block; the returned function ends it, and gives the cost of the commands of these kinds. */
  watch?(): Promise<(sent: Iterable<string>) => Promise<Spent>>;
}

/** Cumulative counts of a server, by kind of operation, and how many operations one reading itself adds. */
export interface OperationCounter {
  read(): Promise<ReadonlyMap<string, number>>;
  readonly ownOperations: number;
  /** Cumulative microseconds that the server spent on the counted operations, where it reports them. */
  spent?(): Promise<number>;
  /** What one reading adds under its own kind, if that is among the counts. */
  readonly ownKind?: string;
}

/** A meter from counts that only ever rise. */
export function meterOf({ read, spent, ownOperations, ownKind }: OperationCounter): Meter {
  return {
    ...(spent && {
      async watch() {
        const before = await spent();
        return async () => ({ commandMicros: (await spent()) - before });
      },
    }),
    async count(work) {
      const before = await read();
      const result = await work();
      const after = await read();
      const sent = new Map<string, number>();
      for (const [kind, count] of after) {
        const own = kind === ownKind ? ownOperations : 0;
        const grown = count - (before.get(kind) ?? 0) - own;
        if (grown > 0) sent.set(kind, grown);
      }
      const total = [...sent.values()].reduce((sum, count) => sum + count, 0);
      return [{ sent, total, alsoInScripts: [] }, result];
    },
  };
}
