/** How an application reaches its store, and where its metrics are, as plain data. */
export interface MeteredSetup {
  readonly url: string;
  readonly metricsPort: number;
  readonly ttlMs: number;
  readonly env?: NodeJS.ProcessEnv;
}

/** The commands of an application whose metrics are scraped. */
export interface MeteredCommands {
  /** Acquires a lock, and keeps it. */
  hold(name: string): Promise<void>;
  /** Acquires and releases a lock, so many times. */
  work(name: string, times: number): Promise<void>;
  /** Acquires a lock twice at once, and transfers it, so many times. */
  transfer(name: string, times: number): Promise<void>;
  /** Releases a lock when four fifths of its ttl are over. */
  releaseLate(name: string): Promise<void>;
  /** Blocks its event loop for three quarters of the ttl of a lock that it holds. */
  block(name: string): Promise<void>;
  /** Writes with an older token than the one that wrote last. */
  writeLate(name: string): Promise<void>;
  /** Acquires a lock and gives up, and releases another one, while the store stands still. Gives the codes of the errors. */
  giveUp(name: string, held: string): Promise<string[]>;
}
