// The types of the published version cannot be resolved by `import` (its issue #160).
declare module 'redlock' {
  export default class Redlock {
    constructor(clients: Iterable<object>, settings?: Readonly<Record<string, number>>);
    using<T>(resources: string[], duration: number, routine: (signal: AbortSignal) => Promise<T>): Promise<T>;
  }
}
