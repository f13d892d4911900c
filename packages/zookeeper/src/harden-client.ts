import type { Socket } from 'node:net';
import type { NodeZooKeeperClient } from './node-client-types.ts';

/** The internal connection manager of a client, as far as this package uses it. */
export interface ConnectionManager {
  socket?: Socket;
  state?: number;
  pendingBuffer?: Buffer | null;
  onSocketData?(data: Buffer): void;
  onSocketConnected?(): void;
  connectTimeoutHandler?: NodeJS.Timeout;
  onSocketClosed?(hasError: boolean): void;
  onSocketError?(error: Error): void;
}

export function managerOf(client: NodeZooKeeperClient): ConnectionManager | undefined {
  return (client as { connectionManager?: ConnectionManager }).connectionManager;
}

/**
 * Repairs three bugs of `node-zookeeper-client` 1.1.3 in one client, before it connects.
 *
 * The library throws an unknown error code, such as the -12 of a request at the end of its session, where nobody can
 * catch it, and so ends the process. It joins the start of a reply that was cut off to the first reply of the next
 * connection. And the connect timer of a connection that this package destroyed runs on, and cuts the next connection.
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
      // A broken reply ends the connection, but not the session.
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
