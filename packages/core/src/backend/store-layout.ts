/** The reason why this package must not write to a store: a process of the other layout would not see its locks. */
export type StoreLayoutErrorCode =
  /** A newer version of the package laid out the data: upgrade this process. */
  | 'NEWER_SCHEMA'
  /** An older version of the package laid out the data: its processes may still run. */
  | 'OLDER_SCHEMA';

/** The data in a store have another layout than this package writes; `code` says which of the two is newer. */
export class StoreLayoutError extends Error {
  override readonly name = 'StoreLayoutError';
  /** Which of the two layouts is newer. */
  readonly code: StoreLayoutErrorCode;

  /**
   * @param what - the data, as the message names them
   * @param found - the layout that they have
   * @param own - the layout that this package writes
   * @param remedies - what the user can do
   */
  constructor(what: string, found: string, own: number, { other, reset }: LayoutRemedies) {
    // A marker that is no number is none that an older version has written.
    const isOlder = Number(found) < own;
    super(
      `the layout of ${what} is ${found}, and this version of the package writes layout ${own}: processes of the two would not see each ` +
        `other's locks. ${
          isOlder
            ? `Stop all processes of the older version, then ${reset}; or give this process`
            : 'Upgrade this process, or give it'
        } ${other}`,
    );
    this.code = isOlder ? 'OLDER_SCHEMA' : 'NEWER_SCHEMA';
  }
}

/** What the user can do about a store of another layout. */
export interface LayoutRemedies {
  /** What would be another place for the locks of this process: `another prefix`. */
  readonly other: string;
  /** What makes the place free for this layout, once all processes of the older one have ended. */
  readonly reset: string;
}

/** The marker of a layout: one small value in the store, under the prefix of the locks. */
export interface LayoutMarker extends LayoutRemedies {
  /** The data whose layout it marks, for messages. */
  readonly what: string;
  /** Reads the marker; `undefined`: there is none. */
  read(): Promise<string | undefined>;
  /** Creates the marker, unless there is one; returns whether this call did. */
  create(layout: string): Promise<boolean>;
}

const TRIES = 3;

/**
 * Compares the layout of a store with that of the package, before the first lock: one request, and one more in a store without a marker.
 * Processes of both layouts refuse, so that a rolling deployment never has two holders.
 */
export class StoreLayout {
  /** Whether the store is known to have the layout of this package. */
  isKnown = false;
  readonly #own: number;
  readonly #marker: LayoutMarker;
  #asked: Promise<void> | undefined;

  constructor(own: number, marker: LayoutMarker) {
    this.#own = own;
    this.#marker = marker;
  }

  /**
   * Resolves once the store is known to have this layout. After a failure the next call asks again.
   *
   * @throws StoreLayoutError for a store of another layout; errors of the store as they are
   */
  check(): Promise<void> {
    this.#asked ??= this.#check().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  async #check(): Promise<void> {
    const own = String(this.#own);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const found = await this.#marker.read();
      // Where another process creates it first, perhaps with another layout, it is read again.
      if (found === own || (found === undefined && (await this.#marker.create(own)))) {
        this.isKnown = true;
        return;
      }
      if (found !== undefined) throw new StoreLayoutError(this.#marker.what, found, this.#own, this.#marker);
    }
    throw new Error(`${this.#marker.what}: the marker of their layout is deleted again and again`);
  }
}
