import type { BackendKind } from '../src/workload/plan.ts';
import type { PlantedError } from './planted-error.ts';
import { errorsOfApplications } from './planted-errors-application.ts';
import { errorsOfStalls } from './planted-errors-stalls.ts';
import { errorsOfThreads } from './planted-errors-threads.ts';
import { inZookeeper } from './planted-errors-zookeeper.ts';
import { sqliteErrors } from './planted-errors-sqlite.ts';
import { inPostgres } from './planted-errors-postgres.ts';

export type { PlantedError } from './planted-error.ts';

/** What stands in the file, no more of it than tells it apart; what takes its place; what goes wrong. */
type Change = readonly [from: string, to: string, what: string, seed?: number];

function errorsIn(backend: BackendKind, file: string, ...changes: readonly Change[]): PlantedError[] {
  return changes.map(([from, to, what, seed = 1]) => ({ backend, what, seed, change: { file, from, to } }));
}

const inScript = (script: string, ...changes: readonly Change[]): PlantedError[] =>
  errorsIn('redis', `redis-protocol/src/scripts/${script}.lua`, ...changes);

/** One for each thing that a script of Redis does for a promise. */
const inScripts = [
  ...inScript(
    'fragments/attempt',
    [
      'if request.held and string.sub(',
      'if false and string.sub(',
      'a repeated attempt does not find its own hold',
      179,
    ],
    [
      'next_token(request.token, request.horizon or 0)',
      'parse_token(redis.call("GET", request.token))',
      'a token is given again',
    ],
    [
      "request.label, 'PX', ttl)",
      "request.label, 'PX', math.floor(ttl / 2))",
      'a lease is kept for half of its ttl',
    ],
  ),
  ...inScript(
    'fragments/enqueue',
    ["'ZADD', queue, 'LT',", "'ZADD', queue,", 'a repeated attempt goes to the end of the queue', 83],
    [
      "if at then redis.call('SETRANGE', lock, at, '+') end",
      '',
      'the lock does not say that somebody waits',
      10,
    ],
  ),
  ...inScript(
    'fragments/hand-off',
    ['local is_fit = fits(weight, limit, mark)', 'local is_fit = true', 'a waiter gets what does not fit'],
    [
      'local alive = process == own_process or',
      'local alive = true or',
      'a lock is handed to dead processes',
      83,
    ],
    ["redis.pcall('PUBLISH', channel, text)", '', 'a hand-off is not told'],
    [
      "if head[2] then redis.call('ZREM', queue, head[1]) else",
      "if head[2] and alive and weight == exclusive_weight then elseif head[2] then redis.call('ZREM', queue, head[1]) else",
      'a hand-off leaves its waiter in the queue',
      7,
    ],
    [
      'next_token(token, now_ms + queue_ms)',
      'parse_token(redis.call("GET", token))',
      'a hand-off keeps the former token',
    ],
  ),
  ...inScript(
    'fragments/shares',
    ['if mark.first <= now_ms then', 'if false then', 'shares that have ended count on'],
    ['mark.used = mark.used - weight', '', 'permits that are given back stay taken', 107],
  ),
  ...inScript('fragments/token', [
    "horizon * 1000 > now and '%.0f;%.0f' or '%.0f'",
    "'%.0f'",
    'nobody writes that somebody waits in the slot',
  ]),
  ...inScript(
    'acquire',
    [
      'if not before or (#before == #token and before < token) then return',
      'if true then return',
      'the fast path overtakes the queue',
      34,
    ],
    ['used + weight <= limit + 0', 'used + weight <= limit + 1', 'the fast path gives one permit too many'],
    [
      'served, own_token, left = {}, read_state(request)',
      'read_state(request)\nserved = {}',
      'a repeated steal steals again',
      1_040,
    ],
  ),
  ...inScript(
    'abandon',
    ["redis.call('ZREM', KEYS[3], unpack(ARGV, 3))", '0', 'an abandoned waiter stays in the queue'],
    ["if released then redis.call('DEL', KEYS[1]) end", '', 'an abandoned hold stays', 22],
    [
      'hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, word) or word',
      'word',
      'an abandon serves nobody',
      21,
    ],
  ),
  ...inScript(
    'check',
    [
      "hand_off(lock, token, queue, reply_address, mark, 'checked', true) or {}",
      '{}',
      'a check does not serve a free lock',
    ],
    [', unpack(waiting))', ')', 'a check does not put a waiter back into the queue'],
  ),
  ...inScript('downgrade', [
    "math.max(1, redis.call('PTTL', KEYS[1]))",
    '3600000',
    'a downgrade gives an hour',
    20,
  ]),
  ...inScript('force-release', [
    "hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[1], mark, 'ended') or",
    '',
    'a forced release serves nobody',
    373,
  ]),
  ...inScript('many', [
    'elseif not free_for(request) then',
    'elseif false then',
    'a set takes what others hold',
  ]),
  ...inScript(
    'release',
    ["if found ~= ARGV[1] .. '|+' then return 'not-held' end", '', 'a release ends the hold of another', 43],
    ["hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, 'released')", 'false', 'a release serves nobody'],
  ),
  ...inScript(
    'renew',
    ['start == own and', '', 'a renewal renews the hold of another', 34],
    [
      'if start ~= own then',
      "if string.match(start, '^[^|]*|') == string.match(own, '^[^|]*|') then start = own\nelseif start ~= own then",
      'a renewal confirms a later grant of the same acquisition',
      295,
    ],
  ),
  ...inScript('renew-shares', [
    'extend(mark, now_ms + ttl, ttl)',
    '',
    'the ends of renewed shares are not noted',
  ]),
  ...inScript('resize', [
    "hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, 'set') or",
    '',
    'a resize lets nobody in',
    48,
  ]),
];

const PROTOCOL = 'redis-protocol/src';

/** What the clients of Redis must count, repeat and forget. */
const inProtocol = [
  ...errorsIn(
    'redis',
    `${PROTOCOL}/backend.ts`,
    [
      'countedFrom: sentAt,\n          validForMs,',
      'countedFrom: call.now(),\n          validForMs,',
      'a grant counts from its reply',
      34,
    ],
    ['if (isOver(call)) throw error;', '', 'an attempt is repeated after its abandon', 1_352],
    [
      'if (isRedisGrant(grant)) grant.mayBeShared = true;',
      '',
      'a lease that was downgraded is renewed as a lock',
    ],
  ),
  ...errorsIn('redis', `${PROTOCOL}/native-release.ts`, [
    "isValkey ? ['DELIFEQ', key, value] : ['DELEX', key, 'IFEQ', value]",
    "['DEL', key]",
    'a release deletes the lock whoever holds it',
    256,
  ]),
  ...errorsIn(
    'redis',
    `${PROTOCOL}/subscribed-waiters.ts`,
    [
      'if (token <= waiter.lastToken) return;',
      '',
      'a message about an earlier hold is taken for a grant',
      948,
    ],
    [
      'waiter.confirmedAt, waiter.request.ttlMs',
      'waiter.call.now(), waiter.request.ttlMs',
      'a hand-off counts from its message',
      281,
    ],
    [
      'waiter === undefined && !this.#holdUntil.has(id)',
      'waiter === undefined',
      'a late message ends the hold that it tells of',
      8,
    ],
    ['this.heartbeat.beat(waiters);', '', 'waiters are never checked'],
  ),
];

const CORE = 'core/src';

/** One for each check of the simulation, and what keeps the promises around the rules. */
const inCore = [
  ...errorsIn(
    'rules',
    `${CORE}/lifetime/lease-state.ts`,
    ['(validForMs * 0.01 + 2)', '(-validForMs * 0.2)', 'a lease is believed longer than the store keeps it'],
    ['endOf(sentAt, keptForMs)', 'endOf(this.owner.now(), keptForMs)', 'a renewal counts from its reply', 42],
  ),
  ...errorsIn(
    'rules',
    `${CORE}/lifetime/lease-monitor.ts`,
    [
      'if (now >= lease.deadline) lease.loseByTime();',
      'void lease;',
      'the end of a lease by time is not reported',
    ],
    ['if (due.length > 0) void this.#renew(due, now);', '', 'no lease is renewed'],
  ),
  ...errorsIn('rules', `${CORE}/lifetime/timer.ts`, [
    'if (this.#handle === undefined) return;',
    'return;',
    'a timer does not look at a wall clock that was set forward',
    402_669,
  ]),
  ...errorsIn(
    'rules',
    `${CORE}/rules/lock-rules.ts`,
    ['++this.token', 'this.token', 'a token is used again'],
    [
      'if (until > now) continue;',
      'if (until > now + 40) continue;',
      'the store ends a lease before its ttl',
    ],
    [
      'const ended = this.#end(id);',
      'const [ended] = this.forceRelease(undefined);',
      'a release ends the lock of another, too',
    ],
    [
      'for (let { next } = this; next',
      'for (let next = undefined as never; next',
      'who waits behind a holder is not served',
    ],
    ['if (this.#queue.remove(id)) this.changed = true;', '', 'an abandoned waiter stays in the queue'],
    [
      'return this.#queue.length === 0 && this.fits(mode);',
      'return this.fits(mode);',
      'a newcomer overtakes the queue',
    ],
  ),
  ...errorsIn(
    'rules',
    `${CORE}/backend/modes.ts`,
    [
      "return this.#kind === undefined || this.#kind === 'shared';",
      'return true;',
      'a reader enters beside a writer',
    ],
    [
      'this.#weight + mode.weight <= mode.limit',
      'this.#weight + mode.weight <= mode.limit + 1',
      'one permit too many is given out',
    ],
  ),
  ...errorsIn(
    'rules',
    `${CORE}/acquire/acquire-loop.ts`,
    ['if (this.#sent)', 'if (false)', 'an abandon is not sent'],
    [
      'if (this.#enqueue && this.#core.isRetryable(error)) return;',
      '',
      'a failure that passes is not repeated',
    ],
  ),
  ...errorsIn('rules', `${CORE}/manager-core.ts`, [
    "lease.lose('closed');\n      this.abandon(lease.grant.request);",
    "lease.lose('closed');",
    'what is held stays in the store when the locks close',
  ]),
  ...errorsIn('rules', `${CORE}/compose/multi-resource-lock.ts`, [
    'Math.max(1, startedAt',
    'Math.max(0, startedAt',
    'a set of locks whose time is over makes one more attempt, of any length',
    413,
  ]),
  ...errorsIn('rules', `${CORE}/scope/scope.ts`, [
    'if (this.activeChild !== undefined) return undefined;',
    '',
    'children of one scope enter beside each other',
    27,
  ]),
];

const QUORUM = 'quorum/src';

const inQuorum = [
  ...errorsIn('quorum', `${QUORUM}/quorum-options.ts`, [
    'Math.floor(nodes.length / 2) + 1',
    'Math.floor(nodes.length / 2)',
    'half of the stores is a majority',
  ]),
  ...errorsIn(
    'quorum',
    `${QUORUM}/quorum-backend.ts`,
    ['const cleanUp = nodes.map(', 'const cleanUp = [].map(', 'what a minority granted is not returned'],
    [
      'if (validities.length >= majority) {',
      'if (validities.length > 0) {',
      'a renewal by one store is enough',
    ],
  ),
  ...errorsIn('quorum', `${QUORUM}/acquire-again.ts`, [
    'const { steal: _, ...request } = { ...grant.request, ttlMs };',
    'const request = { ...grant.request, ttlMs, steal: true };',
    'a renewal takes a store from who holds there',
    629,
  ]),
  ...errorsIn('quorum', `${QUORUM}/quorum-backend.ts`, [
    'for (const node of this.#quorum.nodes) void',
    'for (const node of [] as LockBackend[]) void',
    'a lost lease stays on a minority',
    2392,
  ]),
  ...errorsIn('quorum', `${CORE}/acquire/acquire-loop.ts`, [
    'if (this.#failures > 0) this.#core.abandon(this.#request);\n      this.#renewId();',
    '',
    'an attempt is repeated with the id of one that was abandoned',
  ]),
];

const inCohorts = [
  ...errorsIn('rules', 'cohort/src/cohort-tokens.ts', [
    '(storeToken << TURN_BITS) | BigInt(turn)',
    'storeToken + BigInt(turn)',
    'a turn has the token of a later lease',
    21,
  ]),
  ...errorsIn(
    'rules',
    'cohort/src/process-queue.ts',
    ['now - lease.grantedAt < withinMs &&', '', 'a lease is passed on for as long as it lasts', 104],
    ['this.#leader?.wait.end();', '', 'the next leader does not ask the store', 21],
  ),
];

/** How processes decide on a row that others write too. */
const inMysql = [
  ...errorsIn('mysql', 'record-protocol/src/row-decision.ts', [
    'Math.min(least + passed, Number.MAX_SAFE_INTEGER)',
    'row.token',
    'a token goes on from the row, whatever has been lost',
    263,
  ]),
  ...errorsIn(
    'mysql',
    'record-protocol/src/row-writer.ts',
    [', context, passed)', ', context)', 'a token goes on from what was known before a failover', 103_541],
    ['decision.serve();', '', 'a step does not serve the queue first'],
  ),
  ...errorsIn('mysql', 'record-protocol/src/row-knowledge.ts', [
    'return changed && isWhole && !needsFresh;',
    'return true;',
    'an answer is given from memory',
  ]),
  ...errorsIn('mysql', 'record-protocol/src/rows-in-use.ts', [
    'for (const deliver of deliveries) deliver?.();',
    '',
    'a hand-off inside the process is not delivered',
    319,
  ]),
  ...errorsIn('mysql', 'record-protocol/src/kernel-backend.ts', [
    '!taken.isAbandoned && this.#closing === undefined',
    'true',
    'a set that was given up is taken',
    934,
  ]),
  ...errorsIn('mysql', 'mysql/src/mysql-table.ts', [
    'rows === part.length',
    'true',
    'a renewal that wrote nothing is confirmed',
  ]),
];

/** One for each thing on which the safety of a store of records hangs. */
const inRecords = [
  ...errorsIn('record', 'record-protocol/src/sightings.ts', [
    'earlier?.mark === mark ? earlier :',
    'earlier !== undefined ? earlier :',
    'others do not notice a renewal',
  ]),
  ...errorsIn('record', 'record-protocol/src/record-rows.ts', [
    'Math.min(since(hold.id) + span,',
    'Math.min(since(hold.id) + span / 2,',
    'others end a hold after half of its ttl',
  ]),
  ...errorsIn(
    'record',
    'record-protocol/src/records-as-table.ts',
    [
      'if (span === undefined && kept !== undefined) return [id, kept];',
      '',
      'a write of others renews a hold',
    ],
    [
      'this.#sightings.sends(version, presentMoment());',
      '',
      'a grant whose answer was lost counts from its sight',
      200_015,
    ],
  ),
  ...errorsIn(
    'record',
    'record-protocol/src/store-clock.ts',
    [
      'Math.ceil(ahead(this.#upper) + this.#skewMicros + span)',
      'Math.ceil(ahead(this.#upper) + span)',
      'the clocks of the servers are taken for one',
    ],
    ['now: now + this.#stepMicros', 'now', 'a clock in steps is taken for an exact one'],
    ['at: askedAt };', 'at };', 'a time is dated by its answer, not by its request', 766],
  ),
  ...errorsIn('record', 'record-protocol/src/heartbeats.ts', [
    'askedAt - since >= lives',
    'askedAt >= since',
    'waiters that live are passed over',
    544,
  ]),
  ...errorsIn('record', 'record-protocol/src/rows-in-use.ts', [
    'serves: (other) => other === client',
    'serves: () => true',
    'a lock is granted to waiters that are not told',
    36,
  ]),
  ...errorsIn('record', 'record-protocol/src/record-waiters.ts', [
    'if (decision.changed) this.#inBackground(writer.resource, () => undefined);',
    '',
    'free capacity is not taken',
  ]),
];

const inEtcd: readonly PlantedError[] = [
  ...errorsIn(
    'etcd',
    'etcd/src/claims.ts',
    [
      '[putHold(acquisition, lease, rank)]',
      '[putHold(acquisition, lease, 0)]',
      'those who are granted together get one token',
      83,
    ],
    [
      '      : this.#behind(turn, acquisition, revision, call);\n  }',
      '      : this.blocked(acquisition, turn, revision, call);\n  }',
      'a check that is answered late gives the lease of a hold away',
      6_392,
    ],
  ),
  ...errorsIn('etcd', 'etcd/src/acquisitions.ts', [
    'return [...this.#known.silentFor(ms), ...abandoned];',
    'return this.#known.silentFor(ms);',
    'the entry of whoever gave up without a server stays',
    323,
  ]),
  ...errorsIn(
    'etcd',
    'etcd/src/lease-validity.ts',
    ['return renewed.raftTerm >= raftTerm;', 'return true;', 'a leader that was replaced is believed', 642],
    [
      'call.now() - leases.ageOf(lease), ttlSeconds',
      'call.now(), ttlSeconds',
      'a lease that is used again counts from its use',
      262,
    ],
  ),
  ...errorsIn('etcd', 'etcd/src/waiter-sessions.ts', [
    '        () => {\n          // The session may live',
    '        () => {\n          this.#lost(session);\n          // The session may live',
    'waiters lose their session while no server answers',
    832,
  ]),
  ...errorsIn(
    'etcd',
    'etcd/src/hold-renewer.ts',
    [
      'response.succeeded || keysAt(response, 0)[0]?.lease === lease.id;',
      'response.succeeded;',
      'a renewal that was sent twice ends the lease to which it has moved its hold',
      192,
    ],
    [
      'return countedFor(ttlMs, renewalStatus);',
      'return renewalStatus;',
      'a renewal counts for as long as a longer one that is under way with it',
      5_918,
    ],
  ),
  ...errorsIn(
    'etcd',
    'etcd/src/holdings.ts',
    [
      '    acquisition.lease = undefined;\n    if (lease === undefined) return;',
      '    if (lease === undefined) return;',
      'a release that is answered twice gives its lease to two locks',
      1_160,
    ],
    [
      '    if (acquisition.hasUnansweredWrite) this.#refuse(acquisition);\n',
      '',
      'a request to queue that is late queues a lost acquisition anew',
      1_511_344_642,
    ],
    [
      'hasUnansweredWrite && lease !== undefined ? this.#leases.revoke(lease, limit) : undefined,',
      'undefined,',
      'the lease of an attempt without an answer outlives its abandon',
      1_115,
    ],
    [
      '...(isQueuing ? [this.#sessions.refuseUnanswered(session)] : [])',
      '',
      'a late request queues whoever gave up',
      22,
    ],
  ),
  ...errorsIn(
    'etcd',
    'etcd/src/txn-branches.ts',
    [
      'return [asBefore, absent(basis.after), absent(stealMark)];',
      'return [asBefore, absent(basis.after)];',
      'a waiter overlooks a steal',
      93,
    ],
    [
      'return [...conditions, nothingBefore(range, position.createRevision)];',
      'return conditions;',
      'a waiter overtakes those ahead of it',
      235,
    ],
    [
      'return [onlyWaiters(range)];',
      'return [];',
      'a waiter overlooks holds that were granted behind it',
      152,
    ],
  ),
  ...errorsIn('etcd', 'etcd/src/watch-stream.ts', [
    'if (isPresent && revisionOf(response) >= subscription.next) void this.#readKey(subscription);',
    '',
    'a watch misses what was deleted before it began',
    559,
  ]),
];

const inTransfers: readonly PlantedError[] = [
  ...errorsIn('rules', 'core/src/manager-core.ts', [
    "lease.released = true;\n    this.drop(lease, 'transferred');\n    const conclude",
    'const conclude',
    'a process goes on with what it has transferred',
  ]),
  ...errorsIn('rules', 'core/src/transfer/transfer.ts', [
    'handle.transfer();',
    '',
    'a handle believes in what it has transferred',
  ]),
  ...errorsIn('record', 'core/src/rules/lock-rules.ts', [
    "this.#isExclusive(request.adopts) ? this.#steal(waiter) : { status: 'contended' }",
    'this.#steal(waiter)',
    'a lease is adopted from whoever holds the lock',
  ]),
  ...inScript('acquire', ["ARGV[10] == 'adopt'", 'false', 'a ticket is adopted twice']),
].map((error) => ({ ...error, variant: 'transfer' as const }));

export const plantedErrors: readonly PlantedError[] = [
  ...inScripts,
  ...inProtocol,
  ...inCore,
  ...inQuorum,
  ...inCohorts,
  ...inMysql,
  ...inRecords,
  ...inEtcd,
  ...inZookeeper,
  ...sqliteErrors,
  ...inPostgres,
  ...inTransfers,
  ...errorsOfStalls,
  ...errorsOfThreads,
  ...errorsOfApplications,
];
