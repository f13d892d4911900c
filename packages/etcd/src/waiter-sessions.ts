import { randomUUID } from 'node:crypto';
import type { Call } from '@locks/core/backend';
import type { IKeyValue, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import { keysAt, revisionOf } from './txn-responses.ts';
import { absent, present, read, when } from './conditions.ts';
import type { QueuePosition } from './etcd-entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { KeepAliveStream } from './keep-alive-stream.ts';
import type { Keys } from './keys.ts';
import { type EtcdWaiterSession, readMarker } from './waiter-session.ts';
import { ChangedMeanwhileError } from './etcd-errors.ts';

/** The time that the session is kept alive after the last waiter, since the next one often comes soon. */
const LINGER_MS = 5_000;
const VERIFY_MS = 1_000;

/** A listener for events of the session of the waiters. */
export interface WaiterSessionListener {
  /** Called before each keep-alive. */
  heartbeat(): void;
  /** Called when the session is gone while acquisitions are queued: all entries may be gone. */
  sessionLost(): void;
}

/**
 * Keeps one session for all waiters of one backend, so that a hundred waiters cost the server no more than one: a lease,
 * and a key under it, the marker. Requests to queue name the revision of the marker; writing the marker again makes
 * every unanswered request fail (docs/spec.md §2.2).
 */
export class EtcdWaiterSessions {
  readonly #port: EtcdPort;
  readonly #keepAlive: KeepAliveStream;
  readonly #keys: Keys;
  readonly #ttlSeconds: number;
  #current: EtcdWaiterSession | undefined;
  #making: Promise<EtcdWaiterSession> | undefined;
  /** The acquisitions whose entries are attached to a session. */
  readonly #queued = new Set<Acquisition>();
  #listener: WaiterSessionListener | undefined;
  #usedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(port: EtcdPort, keepAlive: KeepAliveStream, keys: Keys, ttlSeconds: number) {
    this.#port = port;
    this.#keepAlive = keepAlive;
    this.#keys = keys;
    this.#ttlSeconds = ttlSeconds;
  }

  reportTo(listener: WaiterSessionListener): void {
    this.#listener = listener;
  }

  /** The current session, for a request that is about to be sent: the session does not lapse while that is under way. */
  use(): EtcdWaiterSession | undefined {
    this.#usedAt = performance.now();
    return this.#current;
  }

  isCurrent(session: EtcdWaiterSession): boolean {
    return session === this.#current;
  }

  /** Records the position of an acquisition whose entry was found in the queue. */
  queued(acquisition: Acquisition, position: QueuePosition): void {
    this.#queued.add(acquisition);
    acquisition.position = position;
  }

  /** Records that an acquisition was granted, or that its entry is gone. */
  dequeued(acquisition: Acquisition): void {
    acquisition.position = undefined;
    if (this.#queued.delete(acquisition)) this.#usedAt = performance.now();
  }

  async ensure(call: Call): Promise<EtcdWaiterSession> {
    const current = this.use();
    if (current !== undefined) return current;
    this.#making ??= this.#make(call).finally(() => {
      this.#making = undefined;
    });
    return await this.#making;
  }

  /** Takes the marker from an answer, which says whether the session lives, and at which revision. */
  seen(session: EtcdWaiterSession, marker: IKeyValue | undefined): void {
    if (session !== this.#current) return;
    if (marker === undefined) this.#lost(session);
    else session.revision = Math.max(session.revision, Number(marker.mod_revision));
  }

  /** The operation that makes unanswered requests to queue fail, for the transaction that ends their acquisition. */
  refuseUnanswered(session: EtcdWaiterSession): IRequestOp {
    const { marker } = session;
    return when(
      [present(marker)],
      [{ request_put: { key: marker, value: Buffer.from(''), ignore_lease: true } }],
    );
  }

  async close(limitMs: number): Promise<void> {
    const session = this.#current;
    this.#current = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (session !== undefined) await this.#port.leaseRevoke(session.lease, limitMs).catch(() => {});
  }

  async #make(call: Call): Promise<EtcdWaiterSession> {
    const { id: lease, ttlSeconds } = await this.#port.leaseGrant(this.#ttlSeconds, call);
    const marker = this.#keys.session(randomUUID());
    const put = { request_put: { key: marker, value: Buffer.from(''), lease } };
    const written = await this.#port.txn(
      { compare: [absent(marker)], success: [put], failure: [read({ key: marker })] },
      call,
    );
    // An earlier sending may have written the marker: then the revision of this answer is not the marker's.
    const revision = written.succeeded ? revisionOf(written) : Number(keysAt(written, 0)[0]?.mod_revision);
    if (Number.isNaN(revision)) throw new ChangedMeanwhileError('the session ended while it was made');
    const session: EtcdWaiterSession = { lease, marker, revision };
    this.#current = session;
    this.#usedAt = performance.now();
    this.#startHeartbeat(session, ttlSeconds * 1_000);
    return session;
  }

  #startHeartbeat(session: EtcdWaiterSession, ttlMs: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      const now = performance.now();
      if (this.#queued.size === 0 && now - this.#usedAt > LINGER_MS) return this.#lost(session);
      this.#listener?.heartbeat();
      this.#keepAlive.renew(session.lease).then(
        ({ ttlSeconds }) => {
          if (ttlSeconds === 0) this.#verify(session);
        },
        () => {
          // The session may live even after a long time without an answered keep-alive: a new leader gives it its whole ttl
          // again.
        },
      );
    }, ttlMs / 3).unref();
  }

  /** Reads the marker: a leader that was replaced while it was paused may not know a session that lives. */
  #verify(session: EtcdWaiterSession): void {
    this.#port.run([readMarker(session)], VERIFY_MS).then(
      (response) => this.seen(session, keysAt(response, 0)[0]),
      () => {
        // A failed read is ignored: the next keep-alive repeats it.
      },
    );
  }

  #lost(session: EtcdWaiterSession): void {
    if (this.#current !== session) return;
    this.#current = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#queued.size > 0) this.#listener?.sessionLost();
  }
}
