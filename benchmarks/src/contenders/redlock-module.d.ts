// The types of the published version cannot be resolved by `import` (its issue #160).
declare module 'redlock' {
  export interface Settings {
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly retryJitter: number;
  }
  export interface Lock {
    release(): Promise<unknown>;
  }
  export default class Redlock {
    constructor(clients: Iterable<object>, settings?: Partial<Settings>);
    acquire(resources: string[], durationMs: number): Promise<Lock>;
  }
}
