import { mutantsOf } from './line-mutant.ts';

const STATE = 'core/src/tenure/lease-state.ts';
const MONITOR = 'core/src/tenure/lease-monitor.ts';
const LOOP = 'core/src/acquire/acquire-loop.ts';
const MANAGER = 'core/src/manager-core.ts';

const tenureMutants = [
  ...mutantsOf('rules', STATE, [
    ['- (validForMs * 0.01 + 2);', ';', 'a lease has no margin'],
    ['- (validForMs * 0.01 + 2);', '- 2;', 'a lease has no margin for clocks that run apart'],
    [
      'if (end < this.#deadline) [this.#deadline, this.#validForMs] = [end, ttlMs];',
      '',
      'a shorter ttl does not count from its sending',
    ],
    [
      'if (requests !== this.#requests || this.released || this.#lost !== undefined) return;',
      '',
      'a reply to a renewal before a shorter one moves the end',
    ],
    [
      'if (sentAt < this.#confirmedAt) return;',
      '',
      'the late reply to an earlier renewal moves the end back',
      'the end that it sets is earlier than the lease ends at the store',
    ],
    [
      'const shortestMs = Math.min(ttlMs, ...this.#unconfirmed.map((earlier) => earlier.ttlMs));',
      'const shortestMs = ttlMs;',
      'a shorter renewal that may still arrive is forgotten',
    ],
    ['this.#deadline = endOf(sentAt, keptForMs);', '', 'a renewal does not move the end'],
    [
      'this.#deadline = endOf(sentAt, keptForMs);',
      'this.#deadline = endOf(this.owner.now(), keptForMs);',
      'a renewal counts from its reply',
    ],
    [
      'this.#deadline = endOf(countedFrom, validForMs);',
      'this.#deadline = endOf(now, validForMs);',
      'a lease counts from its grant',
    ],
    [
      'if (now >= this.deadline) this.loseByTime();\n    return this.#lost;',
      'return this.#lost;',
      'what is read of a lease does not look at the clock',
    ],
    ['this.#controller?.abort(lost);', '', 'the signal of a lost lease does not abort'],
    [
      'this.renewIn(this.autoRenew || this.repeatsRenewal ? keptForMs / 3 : Number.POSITIVE_INFINITY, sentAt);',
      'this.renewIn(Number.POSITIVE_INFINITY, sentAt);',
      'a lease is renewed once',
    ],
    [
      'if (autoRenew) this.renewIn(Math.min(validForMs, ttlMs) / 3, countedFrom);',
      'this.renewIn(Math.min(validForMs, ttlMs) / 3, countedFrom);',
      'a manual lease is renewed',
    ],
  ]),
  ...mutantsOf('rules', MONITOR, [
    [
      'if (lease.deadline <= now || lost?.aborted) return undefined;',
      '',
      'a grant that is over is delivered',
    ],
    [
      'if (now >= lease.deadline) lease.loseByTime();',
      'void lease;',
      'the end of a lease by time is not reported',
    ],
    ['if (due.length > 0) void this.#renew(due, now);', '', 'no lease is renewed'],
    [
      'if (nextEventAt < this.#timer.armedFor && this.#leases.has(lease)) this.#timer.arm(nextEventAt);',
      '',
      'the timer does not know of a new lease',
    ],
    [
      'for (const lease of due) lease.renewIn(Math.min(lease.deadline - now, lease.ttlMs) / 3, now);',
      'for (const lease of due) lease.renewIn(Number.POSITIVE_INFINITY, now);',
      'a renewal without an answer is not repeated',
      'the lease ends by its time and says so: no promise is broken',
    ],
    [
      "answer = leases.map(() => ({ status: 'unknown', error }));",
      "answer = leases.map(() => ({ status: 'held' }));",
      'a renewal that failed counts as one that was confirmed',
    ],
    ['lease.lose(standing.reason);\n        return;', 'return;', 'a loss that the store reports is ignored'],
    [
      'if (lease.released) return;',
      '',
      'a reply that comes after the release is used',
      'a released lease takes no end and reports no loss, and its monitoring has ended',
    ],
    [
      "answer = leases.map(() => ({ status: 'unknown', error }));",
      "answer = leases.map(() => ({ status: 'lost', reason: 'expired' }));",
      'a renewal that failed counts as a loss',
    ],
  ]),
  ...mutantsOf('rules', 'core/src/tenure/clock.ts', [
    ['this.#gained += ms;', '', 'the time that a machine slept does not count'],
    ['this.#skew += drift;', '', 'what the wall clock gained counts again and again'],
  ]),
];

const agedGrantMutants = mutantsOf('redis', LOOP, [
  ['this.#isAged(grant)', 'false', 'a hand-off with little left is delivered as it is'],
  ["if (standing.status !== 'held') return undefined;", '', 'a hand-off that is lost by now is delivered'],
  [
    'return this.#accept(grant, { countedFrom, validForMs: standing.validForMs ?? ttlMs });',
    'return this.#accept(grant, { countedFrom: clock.now(), validForMs: standing.validForMs ?? ttlMs });',
    'a hand-off that is renewed first counts from the answer',
  ],
]);

/** A message of Redis is a grant: another store is asked first, and meanwhile timers run. */
const grantMutants = mutantsOf('redis', MONITOR, [
  [
    'if (monitors.size > 0) for (const monitor of monitors) monitor.endOverdue();',
    '',
    'a grant may be read before the end of the lease before',
  ],
]);

const acquireMutants = [
  ...mutantsOf('rules', LOOP, [
    ['if (this.#sent) this.#core.abandonWhenAdmitted(this.#request);', '', 'who gives up does not abandon'],
    [
      "if (this.#enqueue || late?.status === 'granted') this.#core.abandon(request);",
      '',
      'an attempt that is answered late is not abandoned',
    ],
    [
      'if (late !== undefined && isOver) this.#core.abandon(request);',
      '',
      'a hand-off that comes late is not abandoned',
      'only a store that grants by `awaitTurn` gives one: here that is Redis',
    ],
    [
      'this.#core.abandon(this.#request);\n    this.#lastError = new Error(USELESS_GRANT);',
      'this.#lastError = new Error(USELESS_GRANT);',
      'a grant that came too late stays in the store',
      'it ends there by its ttl',
    ],
    [
      'if (step === INTERRUPTED || this.#call.interruption !== undefined) throw this.#abandonAndMakeError();',
      'if (step === INTERRUPTED) throw this.#abandonAndMakeError();',
      'a grant that comes with the abort is delivered',
      'the two come in different turns of the simulated event loop',
    ],
    [
      'if (this.#enqueue && this.#core.isRetryable(error)) return;',
      '',
      'a failure that passes is not repeated',
    ],
    ['if (!this.#enqueue) return undefined;', '', 'a single attempt goes on'],
    [
      'return this.#fastHints <= 2 ? ATTEMPT : this.#pause(Math.min(this.#fastHints, 2 * DEFAULT_RETRY_MS));',
      'return new Promise(() => {});',
      'a hint is not followed by an attempt',
    ],
    [
      'const limitMs = enqueue ? waitMs : attemptLimitMs(waitMs, ttlMs);',
      'const limitMs = Number.POSITIVE_INFINITY;',
      'a wait has no end',
    ],
    [
      'this.#ticket?.leave();',
      '',
      'a waiter keeps its place in the queue of its process',
      'only a store without a queue needs that one: see the quorum',
    ],
  ]),
  ...mutantsOf('rules', MANAGER, [
    [
      'lease.released = true;\n    this.drop(lease);',
      'lease.released = true;',
      'a released lease is monitored on',
    ],
    [
      'if (lost !== undefined) return Promise.reject(lost);\n    this.#underWay',
      'this.#underWay',
      'the release of a lost lease asks the store',
      'the store releases nothing of another',
    ],
    [
      "lease.lose('closed');\n      this.abandon(lease.grant.request);",
      "lease.lose('closed');",
      'what is held stays in the store when the locks close',
    ],
    [
      "lease.lose('closed');\n      this.abandon",
      'this.abandon',
      'the end of a lease by a close is not told',
    ],
    ['if (sendings === 1)\n          throw', 'throw', 'a release that was sent again looks lost'],
    [
      "if (reason === 'unconfirmed') this.abandon(lease.grant.request);",
      '',
      'a lease that may have been renewed stays in the store',
      'it ends there by its time, as docs/spec.md §2.7 needs it only sooner',
    ],
    [
      'if (this.deadlines.hasReached(interruptedFromPhase)) throw this.closedError(resource);',
      '',
      'closed locks go on',
      'every call ends at once with the phase of its locks, and with the same error',
    ],
    ['interruptWaits();', '', 'a close does not end waits'],
  ]),
  ...mutantsOf('rules', 'core/src/call/send-until-answered.ts', [
    [
      'const mayRepeat = answer === INTERRUPTED || sending.isRetryable(failure.error);',
      'const mayRepeat = false;',
      'a release or an abandon is sent once',
    ],
    [
      'const giveUpAt = (): number => Math.min(latest, startedAt + budgetMs());',
      'const giveUpAt = (): number => startedAt + 100 * budgetMs();',
      'a release is repeated when its lease is over',
    ],
  ]),
  ...mutantsOf('rules', 'core/src/compose/lock-set.ts', [
    [
      'Math.max(1, startedAt',
      'Math.max(0, startedAt',
      'a set whose time is over makes one more attempt, of any length',
    ],
    ['releaseAll(leases);\n      throw error;', 'throw error;', 'a set that fails keeps what it has'],
    [
      'releaseAll(leases);\n      if (!isComplete',
      'if (!isComplete',
      'a set that has too little time left keeps what it has',
    ],
    [
      'if (isComplete && ended === undefined) return this.#deliver(leases, options);',
      'if (isComplete) return this.#deliver(leases, options);',
      'a set is delivered of which one lease is over',
    ],
  ]),
  ...mutantsOf('rules', 'core/src/compose/acquire-at-once.ts', [
    [
      'if (answer === INTERRUPTED || interruption !== undefined) {\n    abandonAll(core, all);',
      'if (answer === INTERRUPTED || interruption !== undefined) {',
      'a set that is taken at once is not abandoned when its time is over',
    ],
    [
      'abandonAll(core, all);\n    const { error } = answer;',
      'const { error } = answer;',
      'a set that is taken at once is not abandoned when it fails',
    ],
    [
      'if (late !== undefined) abandonAll(core, all);',
      '',
      'a set that is granted late is not abandoned',
      'it was abandoned when its time was over, and only an abandon that overtakes the step leaves anything: until its ttl',
    ],
  ]),
];

const scopeMutants = mutantsOf('rules', 'core/src/scope/scope.ts', [
  [
    'if (this.activeChild !== undefined) return undefined;',
    '',
    'children of one scope enter beside each other',
  ],
  ["next.admit(parent.tryEnter() ?? { status: 'closed' });", '', 'the next child is not let in'],
  ['this.lease.holdCount += 1;', '', 'a re-entry is not counted'],
]);

const quorumMutants = [
  ...mutantsOf('quorum', 'core/src/quorum/quorum-options.ts', [
    ['Math.floor(nodes.length / 2) + 1', 'Math.floor(nodes.length / 2)', 'half of the stores is a majority'],
  ]),
  ...mutantsOf('quorum', 'core/src/quorum/quorum-backend.ts', [
    ['const cleanUp = nodes.map(', 'const cleanUp = [].map(', 'what a minority granted is not returned'],
    [
      'if (end > call.now()) {',
      'if (true) {',
      'a majority counts that is over',
      'core does not deliver a lease that is over (docs/spec.md §1.4)',
    ],
    [
      'return ends[this.#quorum.majority - 1] as number;',
      'return ends[0] as number;',
      'a lease lasts as long as its longest store',
      'each store is asked at the same time for the same ttl: by the clock of the holder all end together',
    ],
    [
      "if (answer === undefined || answer.status === 'granted')\n            void this.#abandonQuietly(node, request, call);",
      '',
      'a store that grants late keeps its grant',
    ],
    [
      "else if (answer?.status === 'granted') grants[index] = answer.grant;",
      '',
      'a grant after the decision is forgotten',
      'a release and a renewal reach that store by the id: only its own renewal is missing, and a majority is enough',
    ],
    [
      'nodeGrants.over = true;\n    // Abandons',
      '// Abandons',
      'grants that come after a failed attempt are kept',
    ],
    [
      'if (validities.length >= majority) {',
      'if (validities.length > 0) {',
      'a renewal by one store is enough',
    ],
    [
      '(validities[majority - 1] as number)',
      '(validities[0] as number)',
      'a renewal lasts as long as its longest store',
      'each store is asked at the same time for the same ttl: by the clock of the holder all end together',
    ],
    [
      'await node.abandon(grant.request, nodeCall);\n        return',
      'return',
      'a release does not reach a store that granted late',
    ],
    [
      'if (own !== undefined) return node.release(own, nodeCall);',
      "if (own !== undefined) return 'released';",
      'a release reaches no store',
    ],
    [
      "return { status: 'contended', retryAfterMs: RETRY_MS * (1 + Math.random()) };",
      "return { status: 'contended', retryAfterMs: 1e9 };",
      'a waiter of a quorum does not try again',
    ],
  ]),
  ...mutantsOf('quorum', 'core/src/quorum/quorum-grants.ts', [
    [
      "return mayHold ? { status: 'unknown', error: new NoAnswerError('the attempt is under way') } : undefined;",
      'return undefined;',
      'a store that has not answered yet counts as one that refused',
    ],
    [
      'countedFrom: Math.min(startedAt, end - request.ttlMs)',
      'countedFrom: startedAt',
      'a quorum counts from its own sending',
      'each node counts from a later sending, by the same clock',
    ],
  ]),
  ...mutantsOf('quorum', 'core/src/waiting/local-queues.ts', [
    [
      'if (first !== undefined) first.call();',
      'if (first !== undefined) void 0;',
      'the next waiter of a process is not called',
    ],
    ['queue.tickets.delete(ticket);', '', 'a waiter that left stays in the queue of its process'],
  ]),
  ...mutantsOf('quorum', LOOP, [
    ['this.#ticket?.leave();', '', 'a waiter keeps its place in the queue of its process'],
    [
      'if (this.#failures > 0) this.#core.abandon(this.#request);\n      this.#renewId();',
      '',
      'an attempt is repeated with the id of one that was abandoned',
    ],
  ]),
];

/** The lines of core around the rules. */
export const coreMutants = [
  ...tenureMutants,
  ...agedGrantMutants,
  ...grantMutants,
  ...acquireMutants,
  ...scopeMutants,
  ...quorumMutants,
];
