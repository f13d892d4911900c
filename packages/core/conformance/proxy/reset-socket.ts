import type { Socket } from 'node:net';

/**
 * Closes a socket with RST. A socket whose own end is still on its way is destroyed instead: Node refuses to reset it
 * (EINVAL), forgets its handle without closing it, and then never ends the process (seen on Node 20 to 26).
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
