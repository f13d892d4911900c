import { Buffer } from 'node:buffer';
import type { NodeTree, StoredNode, Transaction } from './node-tree.ts';
import { inWords, type Opening, readOpening, readRequest, type Request } from './request.ts';
import { Messages, WireWriter } from './wire.ts';

/** By which a server sends to a client. */
export interface ServerWire {
  send(kind: 'reply' | 'watch', what: () => string, bytes: Buffer): void;
  end(): void;
}

/** A server, as a connection of a client uses it. */
interface ConnectedServer {
  readonly tree: NodeTree;
  touch(session: number): boolean;
  forward(what: Forwarded, session: number, applied: (transaction: Transaction) => void): void;
  revalidate(session: number, tell: (timeoutMs: number | undefined) => void): void;
  takeOver(session: number, by: ServerConnection): void;
  watch(path: string, connection: ServerConnection): void;
  left(connection: ServerConnection): void;
}

interface Pending {
  readonly xid: number;
  readonly request: Request;
  /** Of a write, once this server has carried it out. */
  outcome: Transaction | undefined;
}

const NO_NODE = -101;
const OF_A_WATCH = -1;
const NODE_DELETED = 2;
const CONNECTED = 3;
/** What the answers to the parts of a transaction are. */
const CREATE = 1;
const DELETE = 2;
const ERROR = -1;

/** One connection of a client at a server. Requests are answered in their order, and a read sees the writes before it. */
export class ServerConnection {
  readonly #member: ConnectedServer;
  readonly #wire: ServerWire;
  readonly #messages = new Messages();
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new';
  /** What came while the session was opened. */
  readonly #early: Buffer[] = [];
  readonly #pending: Pending[] = [];
  session = 0;

  constructor(member: ConnectedServer, wire: ServerWire) {
    this.#member = member;
    this.#wire = wire;
  }

  received(bytes: Buffer): void {
    for (const message of this.#messages.of(bytes)) this.#arrived(message);
  }

  /** Tells of a watched node that is gone. */
  deleted(path: string): void {
    if (this.#state !== 'open') return;
    const event = new WireWriter()
      .int(OF_A_WATCH)
      .long(-1)
      .int(0)
      .int(NODE_DELETED)
      .int(CONNECTED)
      .text(path);
    this.#wire.send('watch', () => `${path} was deleted`, event.message);
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#member.left(this);
    this.#wire.end();
  }

  #arrived(message: Buffer): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'opening') return void this.#early.push(message);
    if (this.#state === 'new') {
      const opening = readOpening(message);
      return opening === undefined ? this.close() : this.#open(opening);
    }
    const { xid, request } = readRequest(message);
    // A request of a session that has ended is dropped: its connection is about to end.
    if (!this.#member.touch(this.session)) return;
    const pending: Pending = { xid, request, outcome: undefined };
    this.#pending.push(pending);
    if (isWrite(request))
      this.#member.forward(request, this.session, (transaction) => {
        pending.outcome = transaction;
        this.#answer();
      });
    else this.#answer();
  }

  #open({ lastZxid, timeoutMs, session, password }: Opening): void {
    this.#state = 'opening';
    // The client knows of later transactions: it has to find another server.
    if (lastZxid > this.#member.tree.zxid) return this.close();
    if (session === 0) {
      this.#member.forward({ kind: 'new session', timeoutMs }, 0, ({ change }) => {
        if (change.kind === 'new session') this.#opened(change.session, change.timeoutMs);
      });
    } else if (!password.equals(passwordOf(session))) this.#refuse();
    else {
      this.#member.takeOver(session, this);
      this.session = session;
      this.#member.revalidate(session, (granted) =>
        granted === undefined ? this.#refuse() : this.#opened(session, granted),
      );
    }
  }

  #opened(session: number, timeoutMs: number): void {
    if (this.#state !== 'opening') return;
    this.session = session;
    this.#state = 'open';
    const response = new WireWriter().int(0).int(timeoutMs).long(session).bytes(passwordOf(session));
    this.#wire.send('reply', () => `session ${session}, ${timeoutMs} ms`, response.message);
    for (const message of this.#early.splice(0)) this.#arrived(message);
  }

  /** The session has ended. */
  #refuse(): void {
    if (this.#state !== 'opening') return;
    const response = new WireWriter().int(0).int(0).long(0).bytes(Buffer.alloc(16));
    this.#wire.send('reply', () => 'the session has ended', response.message);
    this.close();
  }

  #answer(): void {
    for (let [next] = this.#pending; next !== undefined; [next] = this.#pending) {
      const { xid, request, outcome } = next;
      if (this.#state !== 'open' || (isWrite(request) && outcome === undefined)) return;
      this.#pending.shift();
      const reply = new WireWriter().int(xid).long(outcome?.zxid ?? this.#member.tree.zxid);
      if (outcome === undefined) this.#read(request, reply);
      else written(outcome, reply);
      this.#wire.send('reply', () => `answer to ${inWords(request)}`, reply.message);
      if (request.kind === 'end session') this.close();
    }
  }

  #read(request: Request, reply: WireWriter): void {
    const { tree } = this.#member;
    switch (request.kind) {
      case 'read': {
        const node = tree.get(request.path);
        if (node === undefined) return void reply.int(NO_NODE);
        if (request.watches) this.#member.watch(request.path, this);
        return writeStat(reply.int(0).bytes(node.data), node);
      }
      case 'list': {
        const node = tree.get(request.path);
        if (node === undefined) return void reply.int(NO_NODE);
        return writeStat(
          reply.int(0).list([...node.children], (name) => reply.text(name)),
          node,
        );
      }
      case 'watch again':
        for (const path of request.paths) {
          if (tree.get(path) === undefined) this.deleted(path);
          else this.#member.watch(path, this);
        }
        return void reply.int(0);
      default:
        return void reply.int(0);
    }
  }
}

type Write = Extract<Request, { kind: 'create' | 'delete' | 'transaction' | 'end session' }>;

/** What a server asks of the leader. */
export type Forwarded = Write | { readonly kind: 'new session'; readonly timeoutMs: number };

function isWrite(request: Request): request is Write {
  return ['create', 'delete', 'transaction', 'end session'].includes(request.kind);
}

function written({ change }: Transaction, reply: WireWriter): void {
  if (change.kind === 'refusal') return void reply.int(change.code);
  reply.int(0);
  if (change.kind === 'create') reply.text(change.path);
  if (change.kind === 'several')
    for (const one of change.changes) {
      if (one.kind === 'create') header(reply, CREATE, 0).text(one.path);
      else header(reply, DELETE, 0);
    }
  if (change.kind === 'refusal of several')
    for (const code of change.codes) header(reply, ERROR, code).int(code);
  if (change.kind === 'several' || change.kind === 'refusal of several') reply.int(-1).boolean(true).int(-1);
}

/** Comes before the answer to each part of a transaction. */
function header(reply: WireWriter, type: number, code: number): WireWriter {
  return reply.int(type).boolean(false).int(code);
}

function writeStat(
  reply: WireWriter,
  { data, czxid, createdAt, owner, children, childrenCreated, pzxid }: StoredNode,
): void {
  // Servers keep how often children were created, and tell how often they changed.
  const cversion = childrenCreated * 2 - children.size;
  reply.long(czxid).long(czxid).long(createdAt).long(createdAt).int(0).int(cversion).int(0);
  reply.long(owner).int(data.length).int(children.size).long(pzxid);
}

function passwordOf(session: number): Buffer {
  const password = Buffer.alloc(16);
  password.writeBigInt64BE(BigInt(session), 8);
  return password;
}
