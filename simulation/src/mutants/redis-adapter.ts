import { mutantsOf } from './line-mutant.ts';

/** The lines of `@locks/redis-protocol` around its scripts. */
export const redisAdapterMutants = [
  ...mutantsOf('redis', 'redis-protocol/src/backend.ts', [
    [
      'countedFrom: sentAt,\n          validForMs,',
      'countedFrom: call.now(),\n          validForMs,',
      'a grant counts from its reply',
    ],
    [
      'if (reply.handOffs.length > 0) this.#handOff(reply.handOffs, keys, call, sentAt);\n    // After',
      '// After',
      'a hand-off to the own process is not delivered',
    ],
    [
      "if (reply.status === 'not-held' && this.#port.reconnects !== reconnects) return 'unknown';",
      '',
      'a release that was sent again looks lost',
    ],
    [
      'if (isRedisGrant(grant)) grant.mayBeShared = true;',
      '',
      'a lease that was downgraded is renewed as a lock',
    ],
    ['if (isOver(call)) throw error;', '', 'an attempt is repeated after its abandon'],
    ['() => !isOver(call),', '', 'an attempt for several locks is repeated after its abandon'],
    [
      'const sentAt = call.now();\n    const reply = await this.#releases',
      'const sentAt = call.now();\n    this.#waiters.forget(grant.request);\n    const reply = await this.#releases',
      'a late message abandons what is being released',
    ],
    [
      'const args = [acquisitionId, replyAddress, ...this.#waiters.membersOf(request)];',
      "const args = [acquisitionId, replyAddress, 'nobody'];",
      'an abandon does not name its waiter',
    ],
    [
      "if (status === 'held') this.#waiters.extend(grant.request.acquisitionId, ttlMs);",
      "if (status === 'held');",
      'a waiter that renewed is forgotten before its messages',
      'a message that is so late has a token that nobody waits for',
    ],
    [
      "else if (status === 'lost' && leases[index]?.mayBeShared !== (grant as RedisGrant).mayBeShared)",
      'else if (false)',
      'a renewal from before a downgrade ends the lease',
    ],
  ]),
  ...mutantsOf('redis', 'redis-protocol/src/release.ts', [
    [
      'if (!isSplitSlot(failure)) throw failure;',
      'throw failure;',
      'nothing is released while a slot moves',
      'core sends a release again, and after the migration it arrives',
    ],
  ]),
  ...mutantsOf('redis', 'redis-protocol/src/native-release.ts', [
    [
      "isValkey ? ['DELIFEQ', key, value] : ['DELEX', key, 'IFEQ', value]",
      "['DEL', key]",
      'a release deletes the lock whoever holds it',
    ],
    [
      'const deleted = Number(await this.#port.send(key, command)) === 1;',
      'await this.#port.send(key, command);\n        const deleted = true;',
      'a release that others wait for hands off to nobody',
    ],
    [
      'if (/unknown command|NOPERM/.test(String(error))) continue;',
      '',
      'a server without the command releases nothing',
    ],
  ]),
  ...mutantsOf('redis', 'redis-protocol/src/local-waiters.ts', [
    ['if (token <= waiter.lastToken) return;', '', 'a message about an earlier hold is taken for a grant'],
    [
      'if (known !== undefined && (known.grant?.fencingToken ?? 0n) > lastToken) return this.#leaveQueue(known);',
      '',
      'a hand-off that is told before the answer to a repeated attempt is forgotten',
      'one schedule of 10 000 has it, such as seed 777008550; a test of the adapter finds it',
    ],
    [
      '(known.grant?.fencingToken ?? 0n) > lastToken) return this.#leaveQueue(known);',
      '(known.grant?.fencingToken ?? 0n) > lastToken) return;',
      'a waiter that stands in the queue twice stays there once it holds',
    ],
    [
      'this.#grant(waiter, token, waiter.confirmedAt, waiter.request.ttlMs);',
      'this.#grant(waiter, token, waiter.call.now(), waiter.request.ttlMs);',
      'a hand-off counts from its message',
    ],
    [
      'this.#grant(waiter, token, now - agoMs(), waiter.request.ttlMs);',
      'this.#grant(waiter, token, now, waiter.request.ttlMs);',
      'a hand-off to the own process counts from its reply',
    ],
    [
      'this.#abandonUnknown(id, lock);\n    return waiter;',
      'void 0;\n    return waiter;',
      'a hand-off to somebody who gave up is kept',
      'the abandon ends the hold too: only where it is lost the hold lasts for its ttl',
    ],
    [
      'if (enqueue !== undefined) enqueue.messageToken = token;',
      '',
      'a message that comes before its reply is lost',
    ],
    [
      'this.subscription.open(slot);\n    // The',
      '// The',
      'the channel is not opened with the first waiter',
    ],
    ['this.heartbeat.beat(waiters);', '', 'waiters are never checked'],
    [
      'this.heartbeat.checkNow(moving);',
      '',
      'waiters from before the channel was open are not moved',
      'the next regular check moves them',
    ],
    [
      'return Array.from(this.subscription.replyAddresses(), (address) => formatMember(request, address));',
      'return [formatMember(request, this.subscription.silent)];',
      'an abandon does not name the waiter that moved',
    ],
  ]),
  ...mutantsOf('redis', 'redis-protocol/src/waiter-heartbeat.ts', [
    [
      'waiter.confirmedAt = Math.max(waiter.confirmedAt, from);',
      'waiter.confirmedAt = Math.max(waiter.confirmedAt, waiter.call.now());',
      'a check counts from its reply',
    ],
    [
      'if (hold !== undefined) this.#events.holds(waiter, hold.token, from, hold.leftMs);',
      'if (hold !== undefined) this.#events.holds(waiter, hold.token, waiter.call.now(), hold.leftMs);',
      'a hold that a check finds counts from its reply',
    ],
    [
      'if (hold !== undefined) this.#events.holds(waiter, hold.token, from, hold.leftMs);',
      'if (hold !== undefined) void 0;',
      'a hold that a check finds is not delivered',
    ],
    [
      'const mayRepeat = (): boolean => waiters.every(this.#events.isWaiting);',
      'const mayRepeat = (): boolean => true;',
      'a check is repeated after the release of a waiter',
    ],
    [
      'waiter.lastToken = Math.max(waiter.lastToken, lastToken);',
      '',
      'a check does not note the last token',
      'a message of before the check names a hold that the check would have found',
    ],
  ]),
];
