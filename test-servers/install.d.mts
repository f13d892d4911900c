export interface EnsureOptions {
  /** The directories to search. Default: PATH and the usual places, or `LOCKS_SERVER_PATH`. */
  readonly searchPath?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Default: standard error. */
  readonly log?: (line: string) => void;
  /** `false` only searches. */
  readonly install?: boolean;
}
/** Makes sure that servers of these kinds can be started here; installs them where it may, else says what to do. */
export declare function ensureServers(
  kinds: readonly string[],
  options?: EnsureOptions,
): { installed: string[]; missing: string[] };
