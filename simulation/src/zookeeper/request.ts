import type { Buffer } from 'node:buffer';
import { WireReader } from './wire.ts';

export type NodeWrite =
  | { readonly kind: 'create'; readonly path: string; readonly data: Buffer; readonly flags: number }
  | { readonly kind: 'delete'; readonly path: string; readonly version: number };

/** A request in a session, as far as `@locks/zookeeper` sends it for locks. */
export type Request =
  | NodeWrite
  /** All of them, or none. */
  | { readonly kind: 'transaction'; readonly writes: readonly NodeWrite[] }
  | { readonly kind: 'read'; readonly path: string; readonly watches: boolean }
  | { readonly kind: 'list'; readonly path: string }
  | { readonly kind: 'watch again'; readonly since: number; readonly paths: readonly string[] }
  | { readonly kind: 'ping' }
  | { readonly kind: 'end session' };

/** The first message on a connection. */
export interface Opening {
  readonly lastZxid: number;
  readonly timeoutMs: number;
  /** 0: a new session. */
  readonly session: number;
  readonly password: Buffer;
}

/** In bytes. */
const LEAST_OPENING = 28;

export interface SentRequest {
  /** By which the client tells its answer. */
  readonly xid: number;
  readonly request: Request;
}

/** `undefined`: it is none. A client that is closed before it is connected sends the end of its session first. */
export function readOpening(message: Buffer): Opening | undefined {
  if (message.length < LEAST_OPENING) return undefined;
  const wire = new WireReader(message);
  wire.int();
  return { lastZxid: wire.long(), timeoutMs: wire.int(), session: wire.long(), password: wire.bytes() };
}

export function readRequest(message: Buffer): SentRequest {
  const wire = new WireReader(message);
  const xid = wire.int();
  return { xid, request: readBody(wire, wire.int()) };
}

function readBody(wire: WireReader, operation: number): Request {
  switch (operation) {
    case 1: {
      const [path, data] = [wire.text(), wire.bytes()];
      wire.list(() => [wire.int(), wire.text(), wire.text()]);
      return { kind: 'create', path, data, flags: wire.int() };
    }
    case 2:
      return { kind: 'delete', path: wire.text(), version: wire.int() };
    case 4:
      return { kind: 'read', path: wire.text(), watches: wire.boolean() };
    case 11:
      return { kind: 'ping' };
    case 12:
      return { kind: 'list', path: wire.text() };
    case 14:
      return { kind: 'transaction', writes: readWrites(wire) };
    case 101:
      return { kind: 'watch again', since: wire.long(), paths: wire.list(() => wire.text()) };
    case -11:
      return { kind: 'end session' };
    default:
      throw new Error(`a simulated ZooKeeper has no operation ${operation}`);
  }
}

function readWrites(wire: WireReader): NodeWrite[] {
  const writes: NodeWrite[] = [];
  for (;;) {
    const [operation, isEnd] = [wire.int(), wire.boolean()];
    wire.int();
    if (isEnd) return writes;
    const write = readBody(wire, operation);
    if (write.kind !== 'create' && write.kind !== 'delete')
      throw new Error(`a simulated ZooKeeper has no ${write.kind} in a transaction`);
    writes.push(write);
  }
}

/** For a timeline. */
export function inWords(request: Request): string {
  const { kind } = request;
  if (kind === 'transaction') return request.writes.map(inWords).join(' together with ');
  return 'path' in request
    ? `${kind} ${request.path}${'watches' in request && request.watches ? ', watched' : ''}`
    : kind;
}
