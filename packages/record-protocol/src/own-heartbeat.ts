import { NoAnswerError } from '@locks/core/backend';
import { freshVersion } from './fresh-version.ts';
import type { Heartbeat } from './heartbeats.ts';
import type { RecordVersion, RecordWrite, RecordWritten, StoredRecord } from './record-store.ts';
import type { TimeLimit } from './time-limit.ts';

const MAX_TRIES = 3;

interface Requests {
  readonly write: (write: RecordWrite, limit: TimeLimit) => Promise<RecordWritten>;
  /** The record that a refused write has met. */
  readonly present: (
    key: string,
    told: StoredRecord | 'absent' | undefined,
    limit: TimeLimit,
  ) => Promise<StoredRecord | undefined>;
}

interface OwnBeat extends Pick<Heartbeat, 'end' | 'lives'> {
  readonly key: string;
  readonly client: string;
}

/** The heartbeat that this process sends. */
export class OwnHeartbeat {
  readonly #requests: Requests;
  #version: RecordVersion | undefined;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /**
   * Tells that this process lives, and calls it: where the calls of others arrive, this one does.
   *
   * @throws the error of the store, where it gave no answer
   */
  async beat({ key, client, end, lives }: OwnBeat, limit: TimeLimit): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      // A store may give a value that it has already the version that it had: two heartbeats always differ.
      const heartbeat: Heartbeat = { beat: freshVersion(), end, lives };
      const value = Buffer.from(JSON.stringify(heartbeat));
      const written = await this.#requests.write({ ...this.#writeOf(key, value), wakes: [client] }, limit);
      if (written.status === 'written') {
        this.#version = written.version;
        return;
      }
      // An earlier heartbeat got no answer, or somebody deleted it.
      if (tries === MAX_TRIES) throw new NoAnswerError('the heartbeat changed under each try');
      const present = await this.#requests.present(key, written.present, limit);
      this.#version = present?.version;
      if (present !== undefined && value.equals(present.value)) return;
    }
  }

  /**
   * Tells that this process has ended.
   *
   * @throws the error of the store, where it gave no answer
   */
  async end(key: string, limit: TimeLimit): Promise<void> {
    await this.#requests.write(this.#writeOf(key, undefined), limit);
  }

  #writeOf(key: string, value: Uint8Array | undefined): RecordWrite {
    return { key, value, ifVersion: this.#version, isIdle: true };
  }
}
