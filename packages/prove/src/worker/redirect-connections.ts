import { isIP, Socket, type TcpNetConnectOpts } from 'node:net';
import type { Address } from '@locks/core/conformance/proxy';

type Connect = (this: Socket, options: object) => Socket;

/**
 * Sends every TCP connection that this process opens from now on through a proxy. Names of servers stay what they are, so that TLS checks
 * the certificate of the server, and the addresses that members of a cluster announce are behind proxies too.
 *
 * @param proxyFor - gives the port of 127.0.0.1 at which the proxy of a server listens
 */
export function redirectConnections(proxyFor: (server: Address) => Promise<number>): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with the socket below
  const connect = Socket.prototype.connect as Connect;
  const redirected = function (this: Socket, ...args: unknown[]): Socket {
    const [options, onConnect] = optionsOf(args);
    if (options.port === undefined) return Reflect.apply(connect, this, args) as Socket;
    const host = options.host ?? 'localhost';
    if (onConnect !== undefined) this.once('connect', onConnect);
    // What is written before the port of the proxy is known waits, as during the look-up of a name.
    (this as { connecting: boolean }).connecting = true;
    proxyFor({ host, port: Number(options.port) }).then(
      (port) => {
        if (this.destroyed) return;
        // What says how to reach the server does not hold for the proxy.
        const local = {
          lookup: undefined,
          family: undefined,
          localAddress: undefined,
          host: '127.0.0.1',
          port,
        };
        connect.call(this, { ...options, ...local });
        // Where TLS begins on this socket later, it checks the certificate for this name.
        if (isIP(host) === 0) (this as { _host?: string })._host = host;
      },
      (error: unknown) => this.destroy(error as Error),
    );
    return this;
  };
  Socket.prototype.connect = redirected as typeof Socket.prototype.connect;
}

type Options = Partial<TcpNetConnectOpts>;

/** The arguments of `connect()` in all their forms; `net.connect()` passes a list. */
function optionsOf(args: readonly unknown[]): [options: Options, onConnect: (() => void) | undefined] {
  const [first, ...others] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
  const onConnect = others.find((one): one is () => void => typeof one === 'function');
  if (typeof first === 'object' && first !== null) return [first as Options, onConnect];
  const [host] = others;
  // A text that is no number is the path of a socket.
  if (typeof first === 'string' && !/^\d+$/.test(first)) return [{}, onConnect];
  return [{ port: Number(first), ...(typeof host === 'string' && { host }) }, onConnect];
}
