import type { Socket } from 'node:net';
import type { NodeZooKeeperClient } from './node-client-types.ts';

/** The part of the library behind a client. */
export interface ConnectionManager {
  socket?: Socket;
  pendingBuffer?: Buffer | null;
  onSocketData?(data: Buffer): void;
  onSocketConnected?(): void;
  connectTimeoutHandler?: NodeJS.Timeout;
  onSocketClosed?(hasError: boolean): void;
}

export function managerOf(client: NodeZooKeeperClient): ConnectionManager | undefined {
  return (client as { connectionManager?: ConnectionManager }).connectionManager;
}

/**
 * Mends three faults of `node-zookeeper-client` 1.1.3 in one client, before it connects.
 *
 * An error code that it does not know, such as the -12 of a request that meets the end of its session, is thrown where
 * nobody can catch it, and ends the process. And the beginning of a reply that was cut off is taken for the beginning of
 * the next connection's first one. And the time limit of a connect that was ended from here runs on, and cuts the next
 * connection when it is over.
 */
export function hardenClient(client: NodeZooKeeperClient): void {
  const manager = managerOf(client);
  const { onSocketData, onSocketConnected, onSocketClosed } = manager ?? {};
  if (manager === undefined || onSocketData === undefined || onSocketConnected === undefined) return;
  if (onSocketClosed === undefined) return;
  manager.onSocketData = function (this: ConnectionManager, data: Buffer): void {
    try {
      onSocketData.call(this, data);
    } catch {
      // As after any other broken reply: the connection is over, the session is not.
      this.pendingBuffer = null;
      this.socket?.destroy();
    }
  };
  manager.onSocketConnected = function (this: ConnectionManager): void {
    this.pendingBuffer = null;
    onSocketConnected.call(this);
  };
  manager.onSocketClosed = function (this: ConnectionManager, hasError: boolean): void {
    clearTimeout(this.connectTimeoutHandler);
    onSocketClosed.call(this, hasError);
  };
}
