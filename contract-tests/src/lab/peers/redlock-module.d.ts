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

// Version 4 has no types of its own.
declare module 'redlock4' {
  export interface Lock {
    /** Milliseconds since 1970. */
    readonly expiration: number;
    unlock(): Promise<unknown>;
  }
  export default class Redlock {
    constructor(clients: readonly object[], settings?: { readonly retryCount: number });
    lock(resource: string, ttlMs: number): Promise<Lock>;
  }
}
