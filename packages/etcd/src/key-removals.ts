import { createdAt, remove, when } from './conditions.ts';
import { type EtcdPort, type AnswerLimit, SendCount } from './etcd-port.ts';
import { revisionOf, succeededAt } from './txn-responses.ts';

/** The most deletes of one transaction: a server accepts 128 operations. */
const MOST_AT_ONCE = 100;
/** The limit of transactions in flight: high enough that a few which a dead member never answers block nobody. */
const TRANSACTIONS_AT_ONCE = 16;

export interface Removed {
  /** Whether the key was deleted; a removal without a condition always deletes. */
  readonly succeeded: boolean;
  readonly revision: number;
}

interface Removal {
  readonly key: Buffer;
  readonly createRevision: number | undefined;
  readonly limit: AnswerLimit;
  readonly sends: SendCount;
  readonly answer: Promise<Removed>;
  readonly resolve: (removed: Removed) => void;
  readonly reject: (error: unknown) => void;
}

/** Deletes keys, all those of one iteration of the event loop together: thousands of waits or holds may end at once. */
export class KeyRemovals {
  readonly #port: EtcdPort;
  /** The removals that are not sent yet, by key and condition. */
  readonly #pending = new Map<string, Removal>();
  #starting = false;
  #sending = 0;

  constructor(port: EtcdPort) {
    this.#port = port;
  }

  /**
   * @param createRevision - the key is deleted only if it was created at this revision; `undefined`: whenever it was
   * @param sends - counts the sendings; a removal that joins another unsent removal counts none
   */
  remove(
    key: Buffer,
    createRevision: number | undefined,
    limit: AnswerLimit,
    sends: SendCount,
  ): Promise<Removed> {
    const id = `${key.toString('latin1')} ${createRevision}`;
    const same = this.#pending.get(id);
    if (same !== undefined) return same.answer;
    let settle = {} as Pick<Removal, 'resolve' | 'reject'>;
    const answer = new Promise<Removed>((resolve, reject) => (settle = { resolve, reject }));
    this.#pending.set(id, { key, createRevision, limit, sends, answer, ...settle });
    if (!this.#starting) {
      this.#starting = true;
      // `nextTick` runs after all removals of this turn were requested, and before any timer.
      process.nextTick(() => {
        this.#starting = false;
        this.#start();
      });
    }
    return answer;
  }

  #start(): void {
    while (this.#sending < TRANSACTIONS_AT_ONCE && this.#pending.size > 0) void this.#send();
  }

  /** Never rejects: each removal has a promise of its own. */
  async #send(): Promise<void> {
    const removals: Removal[] = [];
    for (const [id, removal] of this.#pending) {
      if (removals.length === MOST_AT_ONCE) break;
      removals.push(removal);
      this.#pending.delete(id);
    }
    const [first] = removals;
    if (first === undefined) return;
    this.#sending += 1;
    const sends = new SendCount();
    const count = (): void => {
      for (const removal of removals) removal.sends.count = sends.count;
    };
    try {
      const response = await this.#port.run(removals.map(operationOf), first.limit, sends);
      count();
      for (const [index, { createRevision, resolve }] of removals.entries()) {
        const succeeded = createRevision === undefined || succeededAt(response, index);
        resolve({ succeeded, revision: revisionOf(response) });
      }
    } catch (error) {
      count();
      for (const { reject } of removals) reject(error);
    }
    this.#sending -= 1;
    this.#start();
  }
}

function operationOf({ key, createRevision }: Removal) {
  return createRevision === undefined ? remove(key) : when([createdAt(key, createRevision)], [remove(key)]);
}
