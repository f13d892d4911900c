import type { SourceChange } from '../src/process/source-change.ts';

/** As the other planted errors are. */
interface SqliteError {
  readonly backend: 'sqlite';
  readonly what: string;
  readonly seed: number;
  readonly change: SourceChange;
}

type Change = readonly [from: string, to: string, what: string, seed?: number];

function errorsIn(file: string, ...changes: readonly Change[]): SqliteError[] {
  return changes.map(([from, to, what, seed = 1]) => ({
    backend: 'sqlite',
    what,
    seed,
    // The clock is shared with other stores of one machine.
    change: { file: file.startsWith('core/') ? `${file}.ts` : `sqlite/src/${file}.ts`, from, to },
  }));
}

/** One for each thing that `@locks/sqlite` does for a promise. */
export const sqliteErrors: readonly SqliteError[] = [
  ...errorsIn(
    'generated/sql',
    ['AND expires_at > ?3 AND token = CAST(?5', 'AND token = CAST(?5', 'a stolen hold is renewed'],
    [
      'SET expires_at = ?3 + ?4, ttl',
      'SET expires_at = ?3 + ?4 / 2, ttl',
      'a renewal lasts for half of its ttl',
    ],
    ['?7, ?7 + ?8, ?8, ?9);', '?7, ?7 + ?8 / 2, ?8, ?9);', 'a lease is kept for half of its ttl'],
    ['max(token + 1, ?1)', 'max(token, ?1)', 'a token is given again'],
    ['max(token + 1, ?1)', '?1', 'tokens fall with the wall clock'],
    ['sum(weight * (expires_at > ?2))', 'sum(expires_at > ?2)', 'a permit of several counts as one'],
    [
      'sum(expires_at > ?2) AS holders, sum(weight * (expires_at > ?2))',
      'sum(?2 > 0) AS holders, sum(weight)',
      'permits that ended are never free again',
    ],
    ['expires_at > ?2 AS live', '(expires_at > ?2 OR 1) AS live', 'a hold that ended is never over'],
    [
      'UPDATE waiters SET permits = ?2',
      'UPDATE waiters SET permits = coalesce(permits, ?2)',
      'waiters keep the limit of before',
    ],
    ['ORDER BY ticket LIMIT 1', 'ORDER BY ticket DESC LIMIT 1', 'whoever came last is next'],
    [
      'SELECT client FROM clients WHERE alive_until <= ?1)',
      'SELECT client FROM clients WHERE alive_until <= ?1 + 1600000)',
      'the waiters of living processes are passed over',
    ],
    [
      'client = ?1 AND alive_until > ?3;',
      'client = ?1 AND (alive_until > ?3 OR 1);',
      'a process that was silent for long keeps its places',
      641,
    ],
  ),
  ...errorsIn(
    'sqlite-holds',
    [
      'tokenOf(minted), countedFrom }',
      'tokenOf(minted), countedFrom: call.now() }',
      'a lease counts from its answer',
      187,
    ],
    ["row.live && mode.kind !== 'permit'", 'row.live', 'permits that are held are not counted'],
  ),
  ...errorsIn(
    'steps',
    ['if (steals) this.holds.steal(', 'if (false) this.holds.steal(', 'a steal leaves the hold that it ends'],
    ['if (nobodyWaits && capacity.take(mode))', 'if (capacity.take(mode))', 'a newcomer overtakes the queue'],
    [
      'if (living !== undefined && areInConflict(living, mode) &&',
      'if (false &&',
      'a lock is granted beside permits',
    ],
    [
      'capacityBeside(beside);',
      'capacityBeside(live);',
      'a steal overlooks who waits behind an exclusive hold',
      2_003_864,
    ],
    [
      '    this.queue.dequeue(acquisitionId);\n  }\n\n  resize',
      '  }\n\n  resize',
      'whoever gave up stays in the queue',
    ],
    ['this.holds.drop(nameBytes(resource), acquisitionId);', '', 'what was granted to whoever gave up stays'],
    [
      'if (isFreed || grants.length === 0) for (const row of others) this.queue.wake(row);',
      '',
      'the next process is not woken',
    ],
  ),
  ...errorsIn('sqlite-backend', [
    'grants: this.#waiters.serve(steps, resource, true) }',
    'grants: [] as Grant[] }',
    'a step that frees a lock serves nobody',
  ]),
  ...errorsIn(
    'polling-waiters',
    ['    this.#wakeFile.close();', '', 'a process that closes leaves its wake file'],
    [
      'if (now - this.#heartbeatAt >= HEARTBEAT_EVERY_MS) this.#beat(now);',
      '',
      'a process that waits sends no heartbeat',
    ],
    [
      'if (gone.has(id) && this.#waiters.get(id) === undefined) steps.queue.dequeue(id);',
      '{}',
      'an entry that nobody waits for stays',
      111,
    ],
    [
      'if (now - this.#heartbeatAt >= HEARTBEAT_EVERY_MS) this.#beat(now);',
      'if (now - this.#heartbeatAt >= HEARTBEAT_EVERY_MS && now >= this.#pollFrom) this.#beat(now);',
      'slow polls put off the heartbeat',
      782,
    ],
  ),
  ...errorsIn('sqlite-client', [
    "row.pid_space !== self.pidSpace || self.pidSpace === ''",
    'false',
    'a process of another container counts as ended',
  ]),
  ...errorsIn(
    'core/src/machine/machine-clock',
    ['monotonicMicros() - offset }', 'monotonicMicros() }', 'containers have different clocks'],
    ['monotonicMicros() - offset }', 'Date.now() * 1000 }', 'leases end by the wall clock'],
  ),
  ...errorsIn(
    'lock-file',
    [
      '} else if (!clock.bootIsExact) {',
      '} else if (false) {',
      'without a name of the boot holds of an earlier one stay',
      126,
    ],
    ['if (boot !== clock.boot) {', 'if (boot === undefined) {', 'holds of an earlier boot stay'],
    [
      "return inTransaction(db, 'BEGIN', () => checkIdentity(db, path));",
      'return checkIdentity(db, path);',
      'a file that another process makes at the same time is refused',
    ],
  ),
  ...errorsIn('transactions', [
    'afterCommit.push(operation.run(steps));',
    'operation.run(steps)();\n        afterCommit.push(() => {});',
    'a step is answered before it is committed',
    143,
  ]),
];
