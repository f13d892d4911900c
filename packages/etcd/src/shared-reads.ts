import type { Call } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import { read } from './conditions.ts';
import type { EtcdPort } from './etcd-port.ts';
import { QueueTurns } from './queue-turns.ts';
import { entriesAt, revisionOf } from './txn-responses.ts';

/** A resource as it was at a revision. */
export interface QueueRead {
  readonly turns: QueueTurns;
  readonly revision: number;
}

/**
 * Reads of whole queues. Hundreds of waiters of one process attempt again at once, and each answer has the whole queue: those that ask
 * before the request is sent share its answer, which is newer than their questions.
 */
export class SharedReads {
  readonly #port: EtcdPort;
  readonly #unsent = new Map<string, Promise<QueueRead>>();

  constructor(port: EtcdPort) {
    this.#port = port;
  }

  of({ range, request: { resource } }: Acquisition, call: Call): Promise<QueueRead> {
    const unsent = this.#unsent.get(resource);
    if (unsent !== undefined) return unsent;
    const reading = Promise.resolve().then(async () => {
      this.#unsent.delete(resource);
      const response = await this.#port.run([read(range)], call);
      return { turns: new QueueTurns(entriesAt(response, 0)), revision: revisionOf(response) };
    });
    this.#unsent.set(resource, reading);
    return reading;
  }
}
