import { NoAnswerError } from '@locks/core/backend';
import type { ILeaseKeepAliveResponse } from 'etcd3';
import { type EtcdPort, hangUp, type KeepAliveDuplex } from './etcd-port.ts';

/** The server's answer to one keep-alive. */
export interface KeepAliveReply {
  /** The ttl of the lease in seconds; 0: the lease is gone. */
  readonly ttlSeconds: number;
  /** The term of the member that answered, read before it renewed. */
  readonly raftTerm: number;
}

interface PendingKeepAlive {
  readonly resolve: (renewed: KeepAliveReply) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
  sends: number;
}

/** The time from the last use of the stream to its close: an open stream keeps the process alive. */
const IDLE_MS = 300;
const CHECK_MS = 100;
/**
 * The number of sendings without a pause. A broken stream is replaced at once only twice: the next member is chosen at random
 * and may be the dead one again.
 */
const QUICK_SENDS = 3;
const PAUSE_MS = 50;

/** Sends the keep-alives of all leases of one backend on one stream, which is open while it is in use. */
export class KeepAliveStream {
  readonly #port: EtcdPort;
  readonly #timeoutMs: number;
  #stream: Promise<KeepAliveDuplex> | undefined;
  /** Unanswered keep-alives by lease, oldest first: the server answers those of one lease in that order. */
  readonly #pending = new Map<string, PendingKeepAlive[]>();
  #unanswered = 0;
  #usedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(port: EtcdPort, timeoutMs: number) {
    this.#port = port;
    this.#timeoutMs = timeoutMs;
  }

  /** Renews a lease for its whole ttl. Rejects if no answer comes; the lease may have been renewed all the same. */
  renew(lease: string): Promise<KeepAliveReply> {
    return new Promise((resolve, reject) => {
      this.#send(lease, { resolve, reject, deadline: performance.now() + this.#timeoutMs, sends: 0 });
    });
  }

  close(): void {
    this.#closed = true;
    this.#end(new NoAnswerError('the backend was closed'));
  }

  #send(lease: string, pending: PendingKeepAlive): void {
    const others = this.#pending.get(lease);
    if (others === undefined) this.#pending.set(lease, [pending]);
    else others.push(pending);
    pending.sends += 1;
    this.#unanswered += 1;
    this.#usedAt = performance.now();
    // In a process that stood still the answers that have arrived are read after the timers.
    this.#timer ??= setInterval(() => setImmediate(() => this.#closeIfUnused()), CHECK_MS).unref();
    const stream = (this.#stream ??= this.#open());
    stream.then(
      (opened) => {
        // A stream that failed while it was opened was replaced, and the keep-alive was sent on the new one.
        if (this.#stream === stream) opened.write({ ID: lease });
      },
      (error: unknown) => this.#streamFailed(stream, error),
    );
  }

  #open(): Promise<KeepAliveDuplex> {
    const stream = this.#port.keepAliveStream().then((opened) => {
      opened.on('data', (answer) => this.#answered(answer));
      opened.on('error', (error) => this.#streamFailed(stream, error));
      opened.on('end', () =>
        this.#streamFailed(stream, new NoAnswerError('the server ended the stream of keep-alives')),
      );
      return opened;
    });
    return stream;
  }

  #answered({ ID, TTL, header }: ILeaseKeepAliveResponse): void {
    const waiting = this.#pending.get(ID);
    const pending = waiting?.shift();
    if (waiting?.length === 0) this.#pending.delete(ID);
    if (pending === undefined) return;
    this.#unanswered -= 1;
    pending.resolve({ ttlSeconds: Number(TTL), raftTerm: Number(header.raft_term) });
  }

  #streamFailed(stream: Promise<KeepAliveDuplex>, error: unknown): void {
    if (this.#stream !== stream) return;
    const unanswered = [...this.#pending];
    this.#pending.clear();
    this.#end(undefined);
    for (const [lease, group] of unanswered) {
      for (const pending of group) {
        const again = (): void => this.#sendAgain(lease, pending, error);
        if (pending.sends < QUICK_SENDS) again();
        else setTimeout(again, PAUSE_MS);
      }
    }
  }

  #sendAgain(lease: string, pending: PendingKeepAlive, error: unknown): void {
    if (this.#closed || pending.deadline <= performance.now()) pending.reject(error);
    else this.#send(lease, pending);
  }

  #closeIfUnused(): void {
    const now = performance.now();
    for (const [oldest] of this.#pending.values()) {
      if (oldest === undefined || oldest.deadline > now) continue;
      // The connection may be dead without a reset. A stream that is cancelled while writable makes the client drop it.
      this.#stream?.then((opened) => opened.cancel()).catch(() => {});
      return this.#end(new NoAnswerError(this.#timeoutMs));
    }
    if (this.#unanswered === 0 && now - this.#usedAt > IDLE_MS) this.#end(undefined);
  }

  #end(error: unknown): void {
    const stream = this.#stream;
    this.#stream = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
    const unanswered = [...this.#pending.values()].flat();
    this.#pending.clear();
    this.#unanswered = 0;
    stream?.then(hangUp).catch(() => {});
    for (const { reject } of unanswered) reject(error);
  }
}
