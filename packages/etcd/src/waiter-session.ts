import { randomUUID } from 'node:crypto';
import type { Call } from '@locks/core/backend';
import type { ICompare, IKeyValue, IRequestOp } from 'etcd3';
import { keysAt, revisionOf } from './answer.ts';
import { absent, modifiedAt, present, read, when } from './conditions.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { KeepAlive } from './keep-alive.ts';
import type { Keys } from './keys.ts';
import { ChangedMeanwhileError } from './retryable.ts';

/** What the places of this process in all queues hang on. */
export interface Session {
  readonly lease: string;
  readonly marker: Buffer;
  /** When the marker was last written: every request to queue names it. */
  revision: number;
}

/** Kept alive so long after the last waiter, since the next one often comes soon. */
const LINGER_MS = 5_000;
const VERIFY_MS = 1_000;

/**
 * One lease for all waiters of one backend, so that a hundred of them cost the server no more than one, and a key under
 * it, the marker. Requests to queue name the revision of the marker; to write the marker again takes the ground from
 * under those that were sent and not answered (docs/spec.md §2.2).
 */
export class WaiterSession {
  readonly #port: EtcdPort;
  readonly #keepAlive: KeepAlive;
  readonly #keys: Keys;
  readonly #ttlSeconds: number;
  readonly #onTick: () => void;
  readonly #onLost: () => void;
  #current: Session | undefined;
  #making: Promise<Session> | undefined;
  #users = 0;
  #usedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    port: EtcdPort,
    keepAlive: KeepAlive,
    keys: Keys,
    ttlSeconds: number,
    { tick, lost }: { readonly tick: () => void; readonly lost: () => void },
  ) {
    this.#port = port;
    this.#keepAlive = keepAlive;
    this.#keys = keys;
    this.#ttlSeconds = ttlSeconds;
    this.#onTick = tick;
    this.#onLost = lost;
  }

  /** The one there is, for a request that is about to be sent: it does not lapse while that is under way. */
  use(): Session | undefined {
    this.#usedAt = performance.now();
    return this.#current;
  }

  enter(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
    this.#usedAt = performance.now();
  }

  async ensure(call: Call): Promise<Session> {
    const current = this.use();
    if (current !== undefined) return current;
    this.#making ??= this.#make(call).finally(() => {
      this.#making = undefined;
    });
    return await this.#making;
  }

  /** What the marker was seen to be in an answer: whether the session lives, and its revision. */
  seen(session: Session, marker: IKeyValue | undefined): void {
    if (session !== this.#current) return;
    if (marker === undefined) this.#lost(session);
    else session.revision = Math.max(session.revision, Number(marker.mod_revision));
  }

  /** For the transaction that ends an acquisition whose request to queue was not answered. */
  refuseUnanswered(session: Session): IRequestOp {
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

  async #make(call: Call): Promise<Session> {
    const { id: lease, ttlSeconds } = await this.#port.leaseGrant(this.#ttlSeconds, call);
    const marker = this.#keys.session(randomUUID());
    const put = { request_put: { key: marker, value: Buffer.from(''), lease } };
    const written = await this.#port.txn(
      { compare: [absent(marker)], success: [put], failure: [read({ key: marker })] },
      call,
    );
    // An earlier sending may have been the one that wrote it: what the store has come to since is not its revision.
    const revision = written.succeeded ? revisionOf(written) : Number(keysAt(written, 0)[0]?.mod_revision);
    if (Number.isNaN(revision)) throw new ChangedMeanwhileError('the session ended while it was made');
    const session: Session = { lease, marker, revision };
    this.#current = session;
    this.#usedAt = performance.now();
    this.#beat(session, ttlSeconds * 1_000);
    return session;
  }

  #beat(session: Session, ttlMs: number): void {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      const now = performance.now();
      if (this.#users === 0 && now - this.#usedAt > LINGER_MS) return this.#lost(session);
      this.#onTick();
      this.#keepAlive.renew(session.lease).then(
        ({ ttlSeconds }) => {
          if (ttlSeconds === 0) this.#verify(session);
        },
        () => {
          // However long there was no answer, the cluster may have kept it: a new leader gives it its whole ttl again.
        },
      );
    }, ttlMs / 3).unref();
  }

  /** A leader that was replaced while it stood still may never have heard of the session: the marker itself says. */
  #verify(session: Session): void {
    this.#port.txn({ compare: [], success: [readMarker(session)], failure: [] }, VERIFY_MS).then(
      (response) => this.seen(session, keysAt(response, 0)[0]),
      () => {
        // The next keep-alive asks again.
      },
    );
  }

  #lost(session: Session): void {
    if (this.#current !== session) return;
    this.#current = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#users > 0) this.#onLost();
  }
}

/** The session lives, and nothing was refused since. */
export function sessionStands({ marker, revision }: Session): ICompare {
  return modifiedAt(marker, revision);
}

export function readMarker({ marker }: Session): IRequestOp {
  return read({ key: marker });
}
