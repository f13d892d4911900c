import type { PlantedError } from './planted-errors.ts';

const MIGRATIONS = 'lease/generated/migrations';

type Change = readonly [from: string, to: string, what: string, seed?: number];

const inFile = (file: string, ...changes: readonly Change[]): PlantedError[] =>
  changes.map(([from, to, what, seed = 1]) => ({
    backend: 'postgres',
    what,
    seed,
    change: { file: `postgres/src/${file}.ts`, from, to },
  }));

/** Errors in the stored functions, in the statements, and in the code around them. */
export const inPostgres: readonly PlantedError[] = [
  ...inFile(
    MIGRATIONS,
    [
      'IF v_lock.expires_at > v_moment AND v_lock.id IS DISTINCT FROM p_ended THEN',
      'IF v_lock.id IS DISTINCT FROM p_ended THEN',
      'a hold that has ended is kept',
    ],
    ['EXIT WHEN v_next.kind = 0 AND v_holders > 0;', '', 'a writer is let in beside readers'],
    [
      'EXIT WHEN v_next.kind = 2 AND v_weights + v_next.weight > v_lock.permits;',
      '',
      'a waiter gets permits that are in use',
    ],
    [
      "PERFORM pg_catalog.pg_notify('locks_' || v_next.client, v_message);",
      'NULL;',
      'nobody tells a waiter of its hand-off',
    ],
    [
      "v_lock.expires_at := v_lock.granted_at + v_next.ttl_ms * interval '1 millisecond';",
      "v_lock.expires_at := v_lock.granted_at + v_next.ttl_ms * interval '500 microseconds';",
      'a hand-off lasts for half of its ttl',
    ],
    [
      'locks.id IS NULL AND NOT locks.queued AND locks.permits IS NULL)',
      'locks.id IS NULL AND locks.permits IS NULL)',
      'a reader passes the queue',
    ],
    ['IF v_lock.id = p_id THEN', 'IF false THEN', 'a repeated attempt does not find its own hold'],
    [
      'AND v_lock.id IS NULL AND NOT v_lock.queued THEN',
      'AND v_lock.id IS NULL THEN',
      'whoever asks for a permit passes the queue',
    ],
    [
      '  IF NOT v_lock.queued THEN\n    UPDATE @schema@.locks SET queued = true WHERE locks.name = p_name;\n  END IF;',
      '',
      'the lock does not say that somebody waits',
    ],
    [
      'permits = p_permits, stolen = v_token\n',
      'permits = p_permits, stolen = 0\n',
      'a steal leaves no mark',
    ],
    ['IF v_item.is_last AND v_ended THEN', 'IF false THEN', 'an abandon serves nobody'],
    [
      'AND locks.token = p_token\n      AND locks.expires_at > pg_catalog.clock_timestamp();',
      'AND locks.token = p_token;',
      'a lease that has ended is renewed',
    ],
    ["'m ' || item.id), '')", "NULL), '')", 'a check does not tell who is in no queue'],
    [
      "RETURN 'h ' || @schema@.ms_until(v_ends) || @schema@.serve(p_name, p_client, NULL);",
      "RETURN 'h ' || @schema@.ms_until(v_ends);",
      'a downgrade lets no reader in',
    ],
    ['AND @schema@.has_ended(p_listener)', 'AND false', 'a hand-off goes to a listener that is gone'],
  ),
  ...inFile(
    'lease/lease-sql',
    ['AND NOT queued\n', '\n', 'a plain release passes over those who wait'],
    [
      'ON CONFLICT (name) DO NOTHING\nRETURNING',
      'ON CONFLICT (name) DO UPDATE SET id = excluded.id, token = excluded.token, expires_at = excluded.expires_at\nRETURNING',
      'a plain insert takes the lock from its holder',
    ],
  ),
  ...inFile('driver/clean-client', [
    'return this.#last !== undefined && this.#last !== IDLE;',
    'return false;',
    'an open transaction of the application takes a lock back',
  ]),
  ...inFile('driver/postgres-statements', [
    'const isUndoable = connection.isInTransaction || codeOf(error) === IN_FAILED_TRANSACTION;',
    'const isUndoable = false;',
    'a transaction that began meanwhile takes a lock back',
  ]),
  ...inFile(
    'lease/notified-waiters',
    ['if (message.token < waiter.ticket) return;', '', 'an old message counts as a hand-off'],
    ['? waiter.confirmedAt : now - ageMs();', '? now : now - ageMs();', 'a hand-off counts from its message'],
  ),
  ...inFile('lease/attempt-queues', [
    'if (plain?.enqueue === true) this.#waiters.register(plain.request, plain.call);',
    '',
    'a plain insert without an answer is forgotten',
  ]),
  ...inFile('lease/waiter-heartbeat', [
    '          waiter.wait.end();\n'.trim(),
    '',
    'a waiter that is in no queue waits on',
  ]),
];
