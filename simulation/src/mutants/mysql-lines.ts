import { mutantsOf } from './line-mutant.ts';

/** The lines of `@locks/mysql`: its SQL, its decisions on a row, and its waiters. */
export const mysqlMutants = [
  ...mutantsOf('mysql', 'mysql/src/mysql-statements.ts', [
    [
      'const free = `waiting = 0 AND free_at <= ${NOW}`;',
      'const free = `waiting = 0`;',
      'what is held is taken in one statement',
    ],
    [
      'const free = `waiting = 0 AND free_at <= ${NOW}`;',
      'const free = `free_at <= ${NOW}`;',
      'one statement overtakes the queue',
    ],
    [
      "${this.#ifFree('token + LAST_INSERT_ID(0)')}",
      "${this.#ifFree('token')}",
      'a statement that took nothing is taken for a grant',
    ],
    [
      'token = IF(${free}, LAST_INSERT_ID(GREATEST(token + 1, ${NOW})), ${otherwise}),',
      'token = IF(${free}, LAST_INSERT_ID(token), ${otherwise}),',
      'a token is given out again',
    ],
    ['${this.#ifFree(`${MAX_BIGINT} + token`)}', "${this.#ifFree('token')}", 'a part of a set is taken'],
    ['free_at = IF(${free}, VALUES(free_at), free_at)`;', 'free_at = free_at`;', 'a lease has no time'],
    [
      ' AND version = ${decision.version}${end}${sole}`;',
      '${end}${sole}`;',
      'a step is written over one that it did not see',
    ],
    [
      ' AND version = ${decision.version}${end}${sole}`;',
      ' AND version = ${decision.version}${sole}`;',
      'a hold is written that has ended since the row was read',
    ],
    [
      ' AND version = ${decision.version}${end}${sole}`;',
      ' AND version = ${decision.version}${end}`;',
      'the end that only the row knows is not looked at',
    ],
    [
      'version = ${version}, at = LAST_INSERT_ID(${NOW})',
      'at = LAST_INSERT_ID(${NOW})',
      'a write leaves the version',
    ],
    [
      'waiting = ${decision.waiting},\nfree_at = ${freeAt(decision)}',
      'waiting = 0,\nfree_at = ${freeAt(decision)}',
      'the row does not say that somebody waits',
    ],
    ['GREATEST(${fixed}, ${NOW} + ${span})', '${NOW} + ${span}', 'a short lease hides the end of a long one'],
    [
      'WHERE seen_at > ${NOW} - ${micros(CLIENT_ALIVE_MS)}',
      'WHERE seen_at > ${NOW} - 1',
      'clients count as dead at once',
    ],
  ]),
  ...mutantsOf('mysql', 'mysql/src/row-decision.ts', [
    [
      'const token = Math.max(row.token, now) + passed;',
      'const token = row.token;',
      'a token goes on from the row, whatever has been lost',
    ],
    ['this.expire(now);', '', 'no lease ends by its time'],
    [
      "if ('isFull' in attempted || 'left' in attempted) this.needsFresh = true;",
      '',
      'what is left of a lease is read from memory',
    ],
  ]),
  ...mutantsOf('mysql', 'mysql/src/row-writer.ts', [
    ['decision.serve();', '', 'a step does not serve the queue first'],
  ]),
  ...mutantsOf('mysql', 'mysql/src/row-writers.ts', [
    ['serves: (other) => other === client,', 'serves: () => true,', 'a lock is granted to another process'],
    [
      'for (const step of batch) step.sentAt = step.call.now();',
      '',
      'a lease counts from its first sending',
      'it ends sooner for its holder than in the store',
    ],
    [
      'if (!fresh && (decision.needsFresh || !decision.changed || !decision.isWhole)) continue;',
      '',
      'an answer is given from memory',
    ],
    [
      'if (decision.hasEnqueued) await this.#hooks?.beat(limit);',
      '',
      'a waiter is written whose process counts as dead',
      'the heartbeat that goes along with the read has told of it',
    ],
    ['for (const deliver of deliveries) deliver?.();', '', 'a hand-off inside the process is not delivered'],
  ]),
  ...mutantsOf('mysql', 'mysql/src/take-many.ts', [
    ['if (!isWanted()) return undefined;', '', 'a set that was given up is taken'],
  ]),
  ...mutantsOf('mysql', 'mysql/src/mysql-backend.ts', [
    [
      "if (!isWanted()) return { status: 'contended' };",
      '',
      'an attempt takes what was abandoned meanwhile',
      'its abandon is the next step on the row, and ends it one write later',
    ],
    ['decision.abandon(acquisitionId);', '', 'an abandon does nothing'],
    [
      'if (!isKnown) decision.needsFresh = true;',
      '',
      'an abandon looks at memory only',
      'a decision that changes nothing is made again from the row, and one that is written was made from the row as it still is',
    ],
    [
      "return ambiguous ? 'unknown' : 'not-held';",
      "return 'not-held';",
      'a release that was sent again looks lost',
    ],
  ]),
  ...mutantsOf('mysql', 'mysql/src/mysql-local-waiters.ts', [
    [
      'if (!queued.has(request.acquisitionId)) wait.end();',
      '',
      'a waiter that is no longer in the queue is not woken',
    ],
    [
      'BigInt(token), countedFrom });',
      'BigInt(token), countedFrom: countedFrom + 50 });',
      'a hand-off counts from later than its sending',
    ],
    [
      'if (sentAt !== undefined && hold !== undefined) this.#grant(waiter, hold.token, sentAt);',
      '',
      'a lock that was granted with the attempt is not delivered',
      'the next poll wakes its waiter',
    ],
    [
      'if (waiter === undefined) return this.#abandon(resource, id, token);',
      'if (waiter === undefined) return;',
      'a lock that was granted to nobody stays',
      'it ends by its ttl',
    ],
    [
      'if (hold === undefined || hold.since === undefined || hold.token === token)',
      'if (true)',
      'a hold that its owner knows is abandoned',
      'it takes a waiter that was silent for 3 s, and a row that was swept before its next attempt',
    ],
    [
      'this.#waiters.pollWithin(this.#pauseOf(resource));',
      '',
      'a waiter beside a hold of its process waits for the heartbeat',
    ],
    [
      'if (decision.changed) this.#inBackground(writer.resource, () => undefined);',
      '',
      'what another process left free is not taken',
    ],
    [
      'if (later.next?.id === head.id) later.abandon(head.id);',
      '',
      'a head that leaves a free lock is not passed over',
      'it takes an abandon that was lost, of a client that waits elsewhere for as long as the run lasts',
    ],
    [
      'performance.now() - since < CLIENT_ALIVE_MS) return;',
      'performance.now() - since < 100) return;',
      'a head that polls seldom is passed over',
    ],
    [
      'if (client === this.#client && this.#waiters.get(id) === undefined) this.#abandon(writer.resource, id);',
      '',
      'an entry that nobody asks for stays',
      'it is ended once the lock is granted to it, or is passed over',
    ],
  ]),
  ...mutantsOf('mysql', 'mysql/src/renewals.ts', [
    [
      'if (!group.mustRead && (isLost || !decision.isWhole)) {',
      'if (!group.mustRead && !decision.isWhole) {',
      'a lease is lost by memory alone',
    ],
    [
      'if (rows === writes.length) {',
      'if (rows > 0 || writes.length > 0) {',
      'a renewal that wrote nothing is confirmed',
    ],
  ]),
];
