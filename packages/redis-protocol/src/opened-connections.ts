interface Opened {
  /** Resolves once the connection listens. */
  readonly ready: Promise<unknown>;
  readonly close: () => void;
}

/** The connections that a port opened beside the client of the application, and closes at its own end. */
export class OpenedConnections {
  readonly #closes = new Set<() => void>();

  /** Remembers how a connection is closed. */
  add(close: () => void): void {
    this.#closes.add(close);
  }

  /** Forgets a connection that is closed or lost. */
  forget(close: () => void): void {
    this.#closes.delete(close);
  }

  /**
   * Waits until a connection listens. One that fails to is closed.
   *
   * @throws what `ready` rejects with
   */
  async whenReady({ ready, close }: Opened): Promise<void> {
    this.#closes.add(close);
    try {
      await ready;
    } catch (error) {
      this.#closes.delete(close);
      close();
      throw error;
    }
  }

  /** Closes all of them. */
  close(): void {
    for (const close of this.#closes) close();
    this.#closes.clear();
  }
}
