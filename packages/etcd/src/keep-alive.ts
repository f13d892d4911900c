import type { ILeaseKeepAliveResponse } from 'etcd3';
import type { EtcdPort, KeepAliveDuplex } from './etcd-port.ts';
import { NoAnswerError } from './retryable.ts';
import { hangUp } from './watch-stream.ts';

/** What the server said to one keep-alive. */
export interface Renewed {
  /** 0: the lease is no more. */
  readonly ttlSeconds: number;
  /** The term of the member that answered, read before it renewed. */
  readonly raftTerm: number;
}

interface Question {
  readonly resolve: (renewed: Renewed) => void;
  readonly reject: (error: unknown) => void;
  readonly deadline: number;
  sendings: number;
}

/** An open stream keeps a process alive: it is closed soon after its last use. */
const IDLE_MS = 300;
const LOOK_MS = 100;
/** A stream that breaks is followed by another: to a member by chance, which may be the dead one again, so at once only twice. */
const QUICK_SENDINGS = 3;
const PAUSE_MS = 50;

/** Keep-alives of all leases of one backend, on one stream that is open while it is used. */
export class KeepAlive {
  readonly #port: EtcdPort;
  readonly #timeoutMs: number;
  #stream: Promise<KeepAliveDuplex> | undefined;
  /** In the order asked: the server answers those of one lease in that order. */
  readonly #questions = new Map<string, Question[]>();
  #asked = 0;
  #usedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(port: EtcdPort, timeoutMs: number) {
    this.#port = port;
    this.#timeoutMs = timeoutMs;
  }

  /** Renews a lease for its whole ttl. Rejects when no answer comes; then the lease may have been renewed. */
  renew(lease: string): Promise<Renewed> {
    return new Promise((resolve, reject) => {
      this.#ask(lease, { resolve, reject, deadline: performance.now() + this.#timeoutMs, sendings: 0 });
    });
  }

  close(): void {
    this.#closed = true;
    this.#end(new NoAnswerError('the backend was closed'));
  }

  #ask(lease: string, question: Question): void {
    const others = this.#questions.get(lease);
    if (others === undefined) this.#questions.set(lease, [question]);
    else others.push(question);
    question.sendings += 1;
    this.#asked += 1;
    this.#usedAt = performance.now();
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref();
    const stream = (this.#stream ??= this.#open());
    stream.then(
      (opened) => {
        // It may have failed while it was opened: then the question was asked again.
        if (this.#stream === stream) opened.write({ ID: lease });
      },
      (error: unknown) => this.#failed(stream, error),
    );
  }

  #open(): Promise<KeepAliveDuplex> {
    const stream = this.#port.keepAliveStream().then((opened) => {
      opened.on('data', (answer) => this.#answered(answer));
      opened.on('error', (error) => this.#failed(stream, error));
      opened.on('end', () =>
        this.#failed(stream, new NoAnswerError('the server ended the stream of keep-alives')),
      );
      return opened;
    });
    return stream;
  }

  #answered({ ID, TTL, header }: ILeaseKeepAliveResponse): void {
    const waiting = this.#questions.get(ID);
    const question = waiting?.shift();
    if (waiting?.length === 0) this.#questions.delete(ID);
    if (question === undefined) return;
    this.#asked -= 1;
    question.resolve({ ttlSeconds: Number(TTL), raftTerm: Number(header.raft_term) });
  }

  #failed(stream: Promise<KeepAliveDuplex>, error: unknown): void {
    if (this.#stream !== stream) return;
    const unanswered = [...this.#questions];
    this.#questions.clear();
    this.#end(undefined);
    for (const [lease, questions] of unanswered) {
      for (const question of questions) {
        const again = (): void => this.#again(lease, question, error);
        if (question.sendings < QUICK_SENDINGS) again();
        else setTimeout(again, PAUSE_MS);
      }
    }
  }

  #again(lease: string, question: Question, error: unknown): void {
    if (this.#closed || question.deadline <= performance.now()) question.reject(error);
    else this.#ask(lease, question);
  }

  #look(): void {
    const now = performance.now();
    for (const [oldest] of this.#questions.values()) {
      if (oldest === undefined || oldest.deadline > now) continue;
      // Perhaps the connection swallows everything. Cancelled while it could still be written to, the client gives it up.
      this.#stream?.then((opened) => opened.cancel()).catch(() => {});
      return this.#end(new NoAnswerError(`no answer to a keep-alive within ${this.#timeoutMs} ms`));
    }
    if (this.#asked === 0 && now - this.#usedAt > IDLE_MS) this.#end(undefined);
  }

  #end(error: unknown): void {
    const stream = this.#stream;
    this.#stream = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
    const unanswered = [...this.#questions.values()].flat();
    this.#questions.clear();
    this.#asked = 0;
    stream?.then(hangUp).catch(() => {});
    for (const { reject } of unanswered) reject(error);
  }
}
