import type { SessionMember, ZookeeperSession } from './zookeeper-session.ts';
import { type ZookeeperClientSource, ZookeeperSessions } from './zookeeper-sessions.ts';

type Session = ZookeeperSession<SessionMember>;

/** How long a session is kept for the next request: it keeps the process alive. */
const IDLE_MS = 1_000;

/** Sessions that are opened for requests and closed soon after the last one. A client of the application stays open. */
export class ShortSessions {
  readonly #source: ZookeeperClientSource;
  readonly #connectTimeoutMs: number;
  #sessions: ZookeeperSessions<SessionMember> | undefined;
  #requests = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(source: ZookeeperClientSource, connectTimeoutMs: number) {
    this.#source = source;
    this.#connectTimeoutMs = connectTimeoutMs;
  }

  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    clearTimeout(this.#idle);
    this.#requests += 1;
    try {
      this.#sessions ??= new ZookeeperSessions(this.#source, this.#connectTimeoutMs);
      const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
      return await work(await this.#sessions.current(call));
    } finally {
      this.#requests -= 1;
      if (this.#requests === 0 && this.#source.kind === 'own')
        this.#idle = setTimeout(() => this.#close(), IDLE_MS);
    }
  }

  connectionError(): unknown {
    return this.#sessions?.connectionError();
  }

  #close(): void {
    // A session that does not answer ends by itself, and nobody waits for its end.
    this.#sessions?.close().catch(() => {});
    this.#sessions = undefined;
  }
}
