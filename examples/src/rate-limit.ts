/**
 * At most five at once, over all machines: a partner's interface that closes the door on the sixth connection. Every
 * permit is a lease of its own, so that of a machine that died comes back by itself.
 */
import { isLockError, type LockManager, type Semaphore } from '@locks/core';

/** All machines must name the same number: another one is refused with `LOCK_CONFLICT`. */
const CONNECTIONS = 5;

export interface Mail {
  readonly to: readonly string[];
  readonly text: string;
}

export type Delivery = 'sent' | 'busy';

export class Mailer {
  readonly #connections: Semaphore;
  readonly #send: (mail: Mail, signal: AbortSignal) => Promise<void>;

  constructor(locks: LockManager, send: (mail: Mail, signal: AbortSignal) => Promise<void>) {
    this.#connections = locks.semaphore('mail-api', CONNECTIONS);
    this.#send = send;
  }

  /** Sends in its turn, first come, first served. A mail to many takes a connection for each, but never all of them. */
  async send(mail: Mail, waitMs = 30_000): Promise<Delivery> {
    const weight = Math.min(mail.to.length, CONNECTIONS - 1);
    try {
      await this.#connections.run((lease) => this.#send(mail, lease.signal), { weight, waitMs });
      return 'sent';
    } catch (error) {
      if (isLockError(error, 'LOCK_TIMEOUT')) return 'busy';
      throw error;
    }
  }
}
