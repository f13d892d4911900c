import type { PoolConnection, PoolOptions } from 'mysql2';
import { openPool } from './fixture.ts';

type Answered = (...answer: unknown[]) => void;

interface Rule {
  readonly what: 'statement' | 'answer';
  readonly matches: (sql: string) => boolean;
  reached(go: () => void): void;
}

/** A statement that was held back, or its answer. */
export interface Held {
  /** Resolves when there is one. */
  readonly reached: Promise<void>;
  letGo(): void;
}

/** A pool on which one statement, or the answer to it, can be held back for as long as a test likes. */
export function heldPool(options: PoolOptions = {}) {
  const pool = openPool(options);
  const sent: string[] = [];
  const rules = new Set<Rule>();
  pool.on('connection', (connection: PoolConnection) => {
    const query = connection.query.bind(connection) as unknown as (options: object, done: Answered) => void;
    const held = (statement: { readonly sql: string }, done: Answered): void => {
      const rule = [...rules].find(({ matches }) => matches(statement.sql));
      if (rule !== undefined) rules.delete(rule);
      const send = (answered: Answered): void => {
        sent.push(statement.sql);
        query(statement, answered);
      };
      if (rule?.what === 'statement') rule.reached(() => send(done));
      else if (rule === undefined) send(done);
      else send((...answer) => rule.reached(() => done(...answer)));
    };
    Object.assign(connection, { query: held });
  });
  /** The next statement that matches. */
  const hold = (what: Rule['what'], matches: Rule['matches']): Held => {
    let letGo: (() => void) | undefined;
    const reached = new Promise<void>((resolve) => {
      rules.add({
        what,
        matches,
        reached: (go) => {
          letGo = go;
          resolve();
        },
      });
    });
    return { reached, letGo: () => letGo?.() };
  };
  return { pool, sent, hold };
}
