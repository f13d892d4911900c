// The library has no types of its own; these are what the comparison uses.
declare module 'node-zookeeper-client' {
  import type { EventEmitter } from 'node:events';
  import type { NodeStat } from '@locks/zookeeper';

  type Callback<A extends readonly unknown[]> = (
    error: { readonly code: number } | null,
    ...answer: A
  ) => void;

  export interface Client extends EventEmitter {
    readonly connectionManager: { socket: import('node:net').Socket; connect(): void };
    connect(): void;
    close(): void;
    getSessionId(): Buffer;
    getSessionTimeout(): number;
    create(path: string, data: Buffer, mode: number, callback: Callback<[string]>): void;
    remove(path: string, version: number, callback: Callback<[]>): void;
    transaction(): Transaction;
    getChildren(path: string, callback: Callback<[readonly string[], NodeStat]>): void;
    getData(path: string, callback: Callback<[Buffer | undefined, NodeStat]>): void;
    getData(
      path: string,
      watcher: (event: { readonly type: number; readonly path: string }) => void,
      callback: Callback<[Buffer | undefined, NodeStat]>,
    ): void;
  }

  export interface Transaction {
    create(path: string, data: Buffer, mode: number): this;
    remove(path: string, version: number): this;
    commit(callback: Callback<[readonly unknown[] | undefined]>): void;
  }

  const library: {
    createClient(
      servers: string,
      options: { sessionTimeout: number; spinDelay: number; retries: number },
    ): Client;
  };
  export default library;
}
