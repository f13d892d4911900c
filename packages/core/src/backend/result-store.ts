/**
 * The store in which `coalesce` of `@locks/once` shares results: texts that end by themselves, by the time of the store, with writes that
 * compare fencing tokens.
 */
export interface ResultStore {
  /** The text of a key; `undefined` or `null` where there is none, or where its time is over. */
  get(key: string): Promise<string | null | undefined>;
  /** Writes a text for `ttlMs` under a token, in one step. Rejects with `LOCK_LOST` when a newer token wrote before. */
  set(key: string, value: string, token: bigint, ttlMs: number): Promise<void>;
}
