// The library has no types of its own: the part that the floor uses.
declare module 'node-zookeeper-client' {
  type Failure = Error | null | undefined;
  export interface Client {
    connect(): void;
    close(): void;
    once(event: 'connected', listener: () => void): unknown;
    mkdirp(path: string, done: (error: Failure) => void): void;
    create(path: string, data: Buffer, mode: number, done: (error: Failure, path: string) => void): void;
    remove(path: string, done: (error: Failure) => void): void;
    getChildren(path: string, done: (error: Failure, names: readonly string[]) => void): void;
    exists(path: string, done: (error: Failure, stat: object | null | undefined) => void): void;
    exists(
      path: string,
      watcher: () => void,
      done: (error: Failure, stat: object | null | undefined) => void,
    ): void;
  }
  const library: {
    createClient(servers: string, options: { sessionTimeout: number }): Client;
    readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
  };
  export default library;
}
