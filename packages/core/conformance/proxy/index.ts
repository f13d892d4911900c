export type { Direction, FaultScope, ReplyLength } from './network-faults.ts';
export { Proxy, startProxy } from './proxy.ts';
export { type Address, type ConnectionContext, ProxyConnection } from './proxy-connection.ts';
