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
}
