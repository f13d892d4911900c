import { type LineChange, mutantsOf } from './line-mutant.ts';

const BACKEND = 'cohort/src/cohort-backend.ts';
const LEASE = 'cohort/src/cohort-lease.ts';
const QUEUE = 'cohort/src/process-queue.ts';
const TOKENS = 'cohort/src/cohort-tokens.ts';

const of = (file: string, changes: readonly LineChange[]) => mutantsOf('rules', file, changes);

/** The lines of cohorts. */
export const cohortMutants = [
  ...of(TOKENS, [
    [
      '(storeToken << TURN_BITS) | BigInt(turn)',
      '(storeToken << TURN_BITS)',
      'all turns of a lease have one token',
    ],
    [
      '(storeToken << TURN_BITS) | BigInt(turn)',
      'storeToken + BigInt(turn)',
      'a turn has the token of a later lease',
    ],
  ]),
  ...of(QUEUE, [
    [
      'next !== this.#leader &&\n      next.ticket <= lease.lastTicket &&\n      lease.turnsTaken < turns &&',
      'next.ticket <= lease.lastTicket &&\n      lease.turnsTaken <= turns &&',
      'a lease serves one turn too many',
    ],
    ['now - lease.grantedAt < withinMs &&', '', 'a lease is passed on for as long as it lasts'],
    [
      'next !== this.#leader &&\n      next.ticket <= lease.lastTicket &&',
      '',
      'who came after the grant has a turn',
    ],
    ['lease.suits(next.request, now);', 'true;', 'a lease is passed on whatever is left of it'],
    [
      'this.#timer = setTimeout(() => this.#closeInTime(lease, now), Math.ceil(leftMs)).unref();',
      '',
      'who counts on a lease that nobody releases waits for it',
    ],
    ['this.#leader?.wait.end();', '', 'the next leader does not ask the store'],
    [
      'entry.mustAttempt = true;\n      this.#elect();',
      'entry.mustAttempt = true;',
      'nobody goes on with the place of a leader who gave up',
    ],
    [
      "this.#forgetEntry('given-up');\n    this.#elect();\n    return entry;",
      "this.#forgetEntry('given-up');\n    return entry;",
      'nobody asks the store after a leader who gave up',
    ],
  ]),
  ...of(LEASE, [
    [
      'if (lost?.aborted === true || ttlMs !== request.ttlMs) return false;',
      '',
      'a lease is passed on after its loss, or with another ttl',
      'a loss closes the queue too, and a turn with more time than is left is renewed at once',
    ],
    [
      'return now < this.#countedFrom + this.#validForMs / 3;',
      'return true;',
      'a lease is passed on at its end, or after it',
    ],
    [
      'countedFrom: this.#countedFrom,',
      'countedFrom: performance.now(),',
      'a turn counts from its own begin',
    ],
    [
      'if (sentAt < this.#countedFrom) return;',
      '',
      'the late answer to a renewal moves the end back',
      'the turns after it count on less than the store keeps',
    ],
  ]),
  ...of(BACKEND, [
    [
      "if (standing.status !== 'lost' || lease === undefined) continue;",
      'continue;',
      'a lease is passed on after its loss',
      'core does not release a lease that is lost, so nothing passes it on, and the time for turns ends it for those who count on it',
    ],
    [
      "if (isOver(turn)) return 'not-held';",
      '',
      'a release that comes again ends the turn of another',
      'core sends a release again where it got no answer, and one that passes a lease on is answered at once',
    ],
    [
      'const standings = items.map(({ grant }) => (isOver(turnIn(grant.request)) ? OVER : undefined));',
      'const standings = items.map(() => undefined as typeof OVER | undefined);',
      'a turn that is over is renewed',
      'a released lease is not renewed, and a renewal from before the release does the next turn no harm',
    ],
    [
      'if (queue?.passOn(lease, call.now()) === true) return',
      'if (false) return',
      'no lease is passed on',
      'the store serves all of them: it only takes longer',
    ],
    [
      'const released = this.#inner.release(lease.grant, call);\n    queue?.close(lease);',
      "const released = Promise.resolve('released' as const);\n    queue?.close(lease);",
      'the last turn does not give the lease back',
    ],
    [
      'const abandoned = this.#inner.abandon(lease.grant.request, call);',
      'const abandoned = Promise.resolve();',
      'a turn that is given up keeps the lease',
      'a turn and an abort come in different turns of the simulated event loop',
    ],
    [
      'if (known !== undefined) await this.#inner.abandon(known, call);',
      '',
      'a leader who gave up waits on in the store',
    ],
    [
      'this.#queues.get(grant.request.resource)?.close(lease);\n    const standing',
      'const standing',
      'a lease that was downgraded is passed on',
    ],
    [
      'if (request.steal === true) queue?.close();',
      '',
      'a lease that was stolen in this process is passed on',
      'who may have been stolen from is not held to exclusion, and the next renewal ends the turns',
    ],
    ['if (!enqueue) return CONTENDED;', '', 'a single attempt overtakes those who wait in its process'],
    [
      'if (requests.some(({ resource }) => this.#queues.has(resource))) return undefined;',
      '',
      'a set overtakes those who wait in its process',
      'they wait in the store too, or for a lease that another holds',
    ],
    [
      'this.#inner.abandon(entry.request, late).catch(() => undefined);',
      '',
      'a grant that nobody waits for any more is kept',
      'the abandon of core ends it too; only where that overtakes the attempt it lasts, until its ttl (docs/spec.md §2.2)',
    ],
  ]),
];
