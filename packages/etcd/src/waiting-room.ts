import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { answerAmong, entriesAt } from './answer.ts';
import type { Attempts, Outcome } from './attempts.ts';
import { read } from './conditions.ts';
import { decodeEntry, type Entry } from './entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Turn } from './turn.ts';
import type { Watch, WatchEvent, WatchStream } from './watch-stream.ts';

const LOOK_MS = 3_000;
const ROUND_MS = 5_000;
const LOOK_AGAIN_MS = 500;
/** A server takes 128 operations in one transaction. */
const MOST_AT_ONCE = 100;
/** Core attempts or waits again sooner than this; an entry that it does not care for must not hold up the others. */
const NEGLECTED_MS = 2_500;

/** The permits of one resource that wait in this process. */
interface Line {
  readonly members: Set<Acquisition>;
  watch: Watch;
  /** Everything up to here has been looked at. */
  seen: number;
  looking: boolean;
  lookAgain: boolean;
}

/** Whoever has its turn, or lost its place, is woken after a look in any case. */
type AfterLook = 'wake the free' | 'wake all' | 'follow the blocked';

/** Those of this process that wait. Each watches the one entry that it must wait for; permits share a watch. */
export class WaitingRoom {
  readonly #port: EtcdPort;
  readonly #watches: WatchStream;
  readonly #attempts: Attempts;
  readonly #acquisitions: Acquisitions;
  readonly #lines = new Map<string, Line>();
  #lookedAt = 0;
  /** Those whose places may be gone, most often all at once. */
  readonly #unsure = new Set<Acquisition>();
  #lookingSoon: NodeJS.Immediate | NodeJS.Timeout | undefined;

  constructor(port: EtcdPort, watches: WatchStream, attempts: Attempts, acquisitions: Acquisitions) {
    this.#port = port;
    this.#watches = watches;
    this.#attempts = attempts;
    this.#acquisitions = acquisitions;
  }

  awaitTurn({ acquisitionId }: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const acquisition = this.#acquisitions.get(acquisitionId);
    if (acquisition?.place === undefined || acquisition.ended) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      acquisition.awaiting?.settle(undefined);
      const { signal } = call;
      const end = (): void => {
        if (acquisition.awaiting === awaiting) acquisition.awaiting = undefined;
        acquisition.heardAt = performance.now();
        signal?.removeEventListener('abort', stop);
      };
      const awaiting = {
        call,
        settle: (grant: Grant | undefined) => {
          end();
          resolve(grant);
        },
        fail: (error: unknown) => {
          end();
          reject(error);
        },
      };
      const stop = (): void => awaiting.settle(undefined);
      acquisition.awaiting = awaiting;
      if (signal?.aborted) return stop();
      signal?.addEventListener('abort', stop, { once: true });
      if (acquisition.woken) this.#wake(acquisition);
    });
  }

  /** Watches for what blocks an acquisition, from the revision at which it was seen. */
  follow(acquisition: Acquisition, { by, revision }: Extract<Outcome, { status: 'blocked' }>): void {
    acquisition.woken = false;
    if (acquisition.request.mode.kind === 'permit') return this.#joinLine(acquisition, revision);
    const next = by.at(-1) as Entry;
    const watched = next.key.toString('latin1');
    if (acquisition.following === watched) return;
    acquisition.unfollow?.();
    const shared = acquisition.request.mode.kind === 'shared';
    const watch = this.#watches.watch({
      range: { key: next.key },
      // A writer that becomes a reader lets readers in.
      puts: shared,
      from: revision + 1,
      tell: (event) => {
        if (event.type === 'put' && decodeEntry(event.kv).mode.kind !== 'shared') return;
        acquisition.unfollow?.();
        // The one before it still waits here: whoever deleted its key has deleted others, too.
        if (event.type !== 'put' && this.#isWaiting(next)) return this.#lookSoon(acquisition);
        this.#wake(acquisition, event.type === 'delete' && shared ? { status: 'blocked', by } : undefined);
      },
    });
    acquisition.following = watched;
    acquisition.unfollow = () => {
      watch.stop();
      acquisition.unfollow = undefined;
      acquisition.following = undefined;
    };
  }

  /** It was granted, or given up. */
  leave(acquisition: Acquisition): void {
    acquisition.unfollow?.();
    acquisition.awaiting?.settle(undefined);
  }

  /** Now and then: whoever was not told of its turn finds it here. One request for a hundred resources. */
  lookRound(): void {
    const now = performance.now();
    if (now < this.#lookedAt + ROUND_MS) return;
    this.#lookedAt = now;
    for (const groups of byResource(this.#acquisitions.all())) {
      this.#lookAt(groups, 'wake the free').catch(() => {
        // The next round, and core's own attempt after a while, look again.
      });
    }
  }

  /** Gives up what nobody waits for any more, and was not told about. */
  dropNeglected(giveUp: (request: AcquireRequest) => void): void {
    const now = performance.now();
    for (const { place, awaiting, heardAt, busy, request } of this.#acquisitions.all()) {
      if (place === undefined || awaiting !== undefined || busy) continue;
      if (now > heardAt + NEGLECTED_MS) giveUp(request);
    }
  }

  /** All places may be gone. */
  lookAgain(): void {
    for (const acquisition of this.#acquisitions.all())
      if (acquisition.place !== undefined) this.#lookSoon(acquisition);
  }

  #isWaiting({ acquisitionId }: Entry): boolean {
    const acquisition = this.#acquisitions.get(acquisitionId);
    return acquisition?.place !== undefined && !acquisition.ended;
  }

  /** One look for all those who are told of in one breath. */
  #lookSoon(acquisition: Acquisition): void {
    this.#unsure.add(acquisition);
    this.#lookingSoon ??= setImmediate(() => this.#lookAtUnsure());
  }

  #lookAtUnsure(): void {
    this.#lookingSoon = undefined;
    const unsure = [...this.#unsure];
    this.#unsure.clear();
    for (const groups of byResource(unsure)) {
      this.#lookAt(groups, 'follow the blocked').catch(() => {
        for (const acquisition of groups.flat()) this.#unsure.add(acquisition);
        this.#lookingSoon ??= setTimeout(() => this.#lookAtUnsure(), LOOK_AGAIN_MS).unref();
      });
    }
  }

  close(): void {
    clearImmediate(this.#lookingSoon as NodeJS.Immediate | undefined);
    clearTimeout(this.#lookingSoon as NodeJS.Timeout | undefined);
    this.#unsure.clear();
    for (const acquisition of this.#acquisitions.all()) this.leave(acquisition);
  }

  #wake(acquisition: Acquisition, turn?: Turn): void {
    const { awaiting } = acquisition;
    acquisition.woken = awaiting === undefined;
    if (awaiting === undefined) return;
    const { call } = awaiting;
    acquisition
      .inTurn(async () => {
        // Granted, or given up, by what was done before in its turn.
        if (acquisition.ended || acquisition.hold !== undefined)
          return acquisition.awaiting?.settle(undefined);
        this.settle(acquisition, await this.#attempts.claim(acquisition, call, turn));
      })
      .catch((error: unknown) => acquisition.awaiting?.fail(error));
  }

  /** Tells whoever waits what came of a claim. */
  settle(acquisition: Acquisition, outcome: Outcome): void {
    switch (outcome.status) {
      case 'granted':
        acquisition.unfollow?.();
        acquisition.awaiting?.settle(outcome.grant);
        return;
      case 'blocked':
        if (!acquisition.ended) this.follow(acquisition, outcome);
        return;
      case 'out-of-line':
      case 'conflict':
        acquisition.unfollow?.();
        acquisition.awaiting?.settle(undefined);
        return;
      default:
        return outcome satisfies never;
    }
  }

  #joinLine(acquisition: Acquisition, revision: number): void {
    const { resource } = acquisition.request;
    let line = this.#lines.get(resource);
    if (line?.members.has(acquisition)) return;
    if (line === undefined) {
      const made: Line = {
        members: new Set(),
        watch: { stop() {} },
        seen: revision,
        looking: false,
        lookAgain: false,
      };
      made.watch = this.#watches.watch({
        range: acquisition.range,
        puts: true,
        from: revision + 1,
        tell: (event) => this.#lineMoved(resource, made, event),
      });
      line = made;
      this.#lines.set(resource, line);
    }
    const joined = line;
    joined.members.add(acquisition);
    acquisition.unfollow = () => {
      acquisition.unfollow = undefined;
      joined.members.delete(acquisition);
      if (joined.members.size > 0 || this.#lines.get(resource) !== joined) return;
      this.#lines.delete(resource);
      joined.watch.stop();
    };
    // What happened since it was read was told to those who were here.
    if (joined.seen > revision) this.#look(resource, joined);
  }

  #lineMoved(resource: string, line: Line, event: WatchEvent): void {
    if (event.type !== 'unknown') {
      line.seen = Math.max(line.seen, event.revision);
      // A newcomer stands behind.
      if (event.type === 'put' && event.kv.version === '1') return;
    } else {
      // The watch ended: whoever is still blocked after the look makes a new one.
      this.#lines.delete(resource);
    }
    this.#look(resource, line);
  }

  /** Reads the states of some resources, and wakes those of each who have their turn, or lost their place. */
  async #lookAt(groups: readonly (readonly Acquisition[])[], then: AfterLook): Promise<void> {
    if (groups.length === 0) return;
    const reads = groups.map(([any]) => read((any as Acquisition).range));
    const now = (): number => performance.now();
    const call: Call = { now, deadline: now() + LOOK_MS };
    const response = await this.#port.txn({ compare: [], success: reads, failure: [] }, call);
    for (const [index, group] of groups.entries()) {
      const entries = entriesAt(response, index);
      for (const member of group) {
        if (member.place === undefined || member.ended) continue;
        const answer = answerAmong(entries, response, member.request.acquisitionId);
        const look = this.#attempts.stands(member, answer, call);
        if (look.status === 'free') this.#wake(member, { status: 'free' });
        else if (look.status === 'out-of-line' || then === 'wake all') this.#wake(member);
        else if (then === 'follow the blocked') this.follow(member, look);
      }
    }
  }

  /** One look for all permits that wait here. */
  #look(resource: string, line: Line): void {
    if (line.looking) {
      line.lookAgain = true;
      return;
    }
    if (line.members.size === 0) return;
    line.looking = true;
    this.#lookAt([[...line.members]], this.#lines.get(resource) === line ? 'wake the free' : 'wake all')
      .catch((error: unknown) => {
        for (const member of line.members) member.awaiting?.fail(error);
      })
      .finally(() => {
        line.looking = false;
        if (!line.lookAgain) return;
        line.lookAgain = false;
        this.#look(resource, line);
      })
      .catch(() => {});
  }
}

/** Those that wait, by resource, in groups for one transaction each. */
function byResource(acquisitions: readonly Acquisition[]): Acquisition[][][] {
  const groups = new Map<string, Acquisition[]>();
  for (const acquisition of acquisitions) {
    if (acquisition.place === undefined) continue;
    const { resource } = acquisition.request;
    const others = groups.get(resource);
    if (others === undefined) groups.set(resource, [acquisition]);
    else others.push(acquisition);
  }
  const resources = [...groups.values()];
  return Array.from({ length: Math.ceil(resources.length / MOST_AT_ONCE) }, (_, chunk) =>
    resources.slice(chunk * MOST_AT_ONCE, (chunk + 1) * MOST_AT_ONCE),
  );
}
