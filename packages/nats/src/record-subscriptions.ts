import type { RecordChange } from '@locks/record-protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';

/** The header of a record that names the clients which its write calls. */
export const WAKES = 'Locks-Wakes';
/** A change that is told before it was stored is told again after this time, in milliseconds. */
const TOLD_AGAIN_MS = 20;
/** How long a subscription stays when nothing listens any more, in milliseconds: a process that waits again soon needs no new one. */
const LINGER_MS = 10_000;

type Changed = (change: RecordChange) => void;

interface Watch {
  readonly listeners: Set<Changed>;
  isOver: boolean;
  linger: NodeJS.Timeout | undefined;
  end: () => void;
}

/** The subscriptions by which the server tells of writes, one for each record that is watched. */
export class RecordSubscriptions {
  readonly #connection: NatsConnection;
  readonly #toldOn: (key: string) => Promise<{ readonly subject: string; readonly isAfter: boolean }>;
  readonly #byKey = new Map<string, Watch>();

  constructor(
    connection: NatsConnection,
    toldOn: (key: string) => Promise<{ readonly subject: string; readonly isAfter: boolean }>,
  ) {
    this.#connection = connection;
    this.#toldOn = toldOn;
  }

  watch(key: string, changed: Changed): () => void {
    const watch = this.#byKey.get(key) ?? this.#begin(key);
    clearTimeout(watch.linger);
    watch.listeners.add(changed);
    return () => {
      watch.listeners.delete(changed);
      if (watch.listeners.size > 0 || watch.isOver) return;
      clearTimeout(watch.linger);
      watch.linger = setTimeout(() => this.#end(key, watch), LINGER_MS).unref();
    };
  }

  close(): void {
    for (const [key, watch] of this.#byKey) this.#end(key, watch);
  }

  #begin(key: string): Watch {
    const watch: Watch = { listeners: new Set(), isOver: false, linger: undefined, end: () => undefined };
    this.#byKey.set(key, watch);
    // Where that fails, a read fails too, or polls tell; the next watch tries again.
    this.#subscribe(key, watch).catch(() => this.#end(key, watch));
    return watch;
  }

  async #subscribe(key: string, watch: Watch): Promise<void> {
    const { subject, isAfter } = await this.#toldOn(key);
    if (watch.isOver) return;
    let again: NodeJS.Timeout | undefined;
    const told = (error: Error | null, message: Msg): void => {
      // Without the permission to subscribe, polls tell.
      if (error !== null || watch.isOver) return;
      const change = { wakes: message.headers?.get(WAKES).split(' ') ?? [] };
      const tell = (): void => {
        for (const changed of [...watch.listeners]) changed(change);
      };
      tell();
      if (!isAfter) again = setTimeout(tell, TOLD_AGAIN_MS).unref();
    };
    const subscription = this.#connection.subscribe(subject, { callback: told });
    // A subscription that is refused rejects this.
    subscription.closed.catch(() => undefined);
    watch.end = () => {
      clearTimeout(again);
      if (!this.#connection.isClosed()) subscription.unsubscribe();
    };
  }

  #end(key: string, watch: Watch): void {
    watch.isOver = true;
    clearTimeout(watch.linger);
    if (this.#byKey.get(key) === watch) this.#byKey.delete(key);
    watch.end();
  }
}
