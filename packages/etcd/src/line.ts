import type { AcquireRequest, Call } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import { answerAmong, entriesAt, keysAt } from './answer.ts';
import { read } from './conditions.ts';
import type { Answered, HoldWrites } from './hold-writes.ts';
import { type Session, type WaiterSession, readMarker } from './waiter-session.ts';
import { firstOf, waysToQueue } from './ways.ts';

/** A server takes 128 operations in one transaction, nested ones and the other way into the queue included. */
const MOST_AT_ONCE = 50;

interface Newcomer {
  readonly acquisition: Acquisition;
  readonly session: Session;
  readonly call: Call;
  readonly resolve: (answer: Answered | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  readonly newcomers: Newcomer[];
  sending: boolean;
}

/**
 * Takes those of this process who queue for the same thing in together: whoever comes while a transaction is on its way
 * goes in with the next. Each of them reads the whole queue, so that one by one a thousand would read it a thousand times.
 */
export class Lines {
  readonly #session: WaiterSession;
  readonly #writes: HoldWrites;
  readonly #lines = new Map<string, Line>();

  constructor(session: WaiterSession, writes: HoldWrites) {
    this.#session = session;
    this.#writes = writes;
  }

  /** What the resource is afterwards; `own` is missing where it could not be queued. `undefined`: nothing happened. */
  enter(acquisition: Acquisition, session: Session, call: Call): Promise<Answered | undefined> {
    const name = lineOf(acquisition.request);
    return new Promise((resolve, reject) => {
      const line = this.#lines.get(name) ?? { newcomers: [], sending: false };
      this.#lines.set(name, line);
      line.newcomers.push({ acquisition, session, call, resolve, reject });
      if (!line.sending) void this.#sendAll(name, line);
    });
  }

  /** Never rejects: each newcomer is told by itself. */
  async #sendAll(name: string, line: Line): Promise<void> {
    line.sending = true;
    while (line.newcomers.length > 0) {
      const next = line.newcomers.splice(0, sameSession(line.newcomers));
      const wanted = next.filter(({ acquisition, reject }) => {
        if (acquisition.ended) reject(new Error('It was given up before it was queued.'));
        return !acquisition.ended;
      });
      try {
        await this.#send(wanted);
      } catch (error) {
        for (const { reject } of wanted) reject(error);
      }
    }
    this.#lines.delete(name);
  }

  async #send(newcomers: readonly Newcomer[]): Promise<void> {
    const [first] = newcomers;
    if (first === undefined) return;
    const { session, call } = first;
    const acquisitions = newcomers.map(({ acquisition }) => acquisition);
    for (const acquisition of acquisitions) acquisition.session = session;
    const operations = [
      firstOf(waysToQueue(acquisitions, session, true)),
      read(first.acquisition.range),
      readMarker(session),
    ];
    const sent = await this.#writes.send(acquisitions, [], operations, call);
    if (sent === undefined) {
      // No other lease than the session's is named.
      this.#session.seen(session, undefined);
      for (const { resolve } of newcomers) resolve(undefined);
      return;
    }
    const { response } = sent;
    this.#session.seen(session, keysAt(response, 2)[0]);
    const entries = entriesAt(response, 1);
    for (const { acquisition, resolve } of newcomers) {
      const answer = answerAmong(entries, response, acquisition.request.acquisitionId);
      if (answer.own !== undefined) acquisition.mates = acquisitions;
      resolve({ ...answer, grant: undefined });
    }
  }
}

/** Those who may go in under the same conditions. */
function lineOf({ resource, mode }: AcquireRequest): string {
  return `${mode.kind === 'permit' ? mode.limit : 'rw'}/${resource}`;
}

/** How many of the first go in together. */
function sameSession(newcomers: readonly Newcomer[]): number {
  const other = newcomers.findIndex(({ session }) => session !== newcomers[0]?.session);
  return Math.min(other < 0 ? newcomers.length : other, MOST_AT_ONCE);
}
