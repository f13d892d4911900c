// The types of the published version cannot be resolved by `import` (its issue #160).
declare module 'redlock' {
  export interface Lock {
    /** Milliseconds since 1970. */
    readonly expiration: number;
    release(): Promise<unknown>;
  }
  export default class Redlock {
    constructor(clients: Iterable<object>);
    acquire(
      resources: string[],
      durationMs: number,
      settings?: { readonly retryCount: number },
    ): Promise<Lock>;
  }
}
