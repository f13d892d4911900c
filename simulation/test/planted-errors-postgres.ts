import type { SourceChange } from '../src/process/source-change.ts';

interface PostgresError {
  readonly backend: 'postgres';
  readonly what: string;
  readonly change: SourceChange;
  readonly seed: number;
}

const MIGRATIONS = 'lease/generated/migrations';

type Change = readonly [from: string, to: string, what: string, seed?: number];

const inFile = (file: string, ...changes: readonly Change[]): PostgresError[] =>
  changes.map(([from, to, what, seed = 1]) => ({
    backend: 'postgres',
    what,
    seed,
    change: { file: `postgres/src/${file}.ts`, from, to },
  }));

/** Errors in the stored functions, in the statements, and in the code around them. */
export const inPostgres: readonly PostgresError[] = [
  ...inFile(
    MIGRATIONS,
    [
      'IF v_lock.expires_at > v_moment AND v_lock.id IS DISTINCT FROM p_ended THEN',
      'IF v_lock.id IS DISTINCT FROM p_ended THEN',
      'a hold that has ended is kept',
      4,
    ],
    ['EXIT WHEN v_next.kind = 0 AND v_holders > 0;', '', 'a writer is let in beside readers', 2],
    [
      'EXIT WHEN v_next.kind = 2 AND v_weights + v_next.weight > v_lock.permits;',
      '',
      'a waiter gets permits that are in use',
    ],
    [
      "PERFORM pg_catalog.pg_notify('locks_' || v_next.client, v_message);",
      'NULL;',
      'nobody tells a waiter of its hand-off',
      9,
    ],
    [
      "v_lock.expires_at := v_lock.granted_at + v_next.ttl_ms * interval '1 millisecond';",
      "v_lock.expires_at := v_lock.granted_at + v_next.ttl_ms * interval '500 microseconds';",
      'a hand-off lasts for half of its ttl',
      12,
    ],
    [
      'locks.id IS NULL AND NOT locks.queued AND locks.permits IS NULL)',
      'locks.id IS NULL AND locks.permits IS NULL)',
      'a reader passes the queue',
      8,
    ],
    [
      'AND v_lock.id IS NULL AND NOT v_lock.queued THEN',
      'AND v_lock.id IS NULL THEN',
      'whoever asks for a permit passes the queue',
      8,
    ],
    [
      '  IF NOT v_lock.queued THEN\n    UPDATE @schema@.locks SET queued = true WHERE locks.name = p_name;\n  END IF;',
      '',
      'the lock does not say that somebody waits',
    ],
    ['IF v_item.is_last AND v_ended THEN', 'IF false THEN', 'an abandon serves nobody', 7],
    ["'m ' || item.id), '')", "NULL), '')", 'a check does not tell who is in no queue', 31],
    [
      "RETURN 'h ' || @schema@.ms_until(v_ends) || @schema@.serve(p_name, p_client, NULL);",
      "RETURN 'h ' || @schema@.ms_until(v_ends);",
      'a downgrade lets no reader in',
      78,
    ],
  ),
  ...inFile(MIGRATIONS, [
    'IF NOT p_steals THEN',
    'IF true THEN',
    'a steal takes the lock from those whose turn has just come',
    190_832_906,
  ]),
  ...inFile(
    'lease/lease-sql',
    ['AND NOT queued\n', '\n', 'a plain release passes over those who wait', 13],
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
    51,
  ]),
  ...inFile('lease/notified-waiters', [
    '? waiter.confirmedAt : now - ageMs();',
    '? now : now - ageMs();',
    'a hand-off counts from its message',
    42,
  ]),
  ...inFile('lease/waiter-heartbeat', [
    'waiter.wait.end();',
    '',
    'a waiter that is in no queue waits on',
    31,
  ]),
];
