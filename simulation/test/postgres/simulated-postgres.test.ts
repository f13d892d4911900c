import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { World } from '../../src/kernel/world.ts';
import {
  type SentStatement,
  type ServerSession,
  SimulatedPostgres,
} from '../../src/postgres/simulated-postgres.ts';
import { type Outcome, PostgresError } from '../../src/postgres/wire-format.ts';
import { LockCode } from '../../src/process/lock-code.ts';
import { SimulatedProcess } from '../../src/process/simulated-process.ts';

test('a standby takes over behind a session that may only read', async () => {
  const { world, server } = await startServer();
  const session = server.open(() => {});
  world.goAhead(10);
  const inserted = insert('61');
  ask(server, session, inserted);
  expect(server.tables[0]).toContain('"name":"\\\\x61"');
  ask(server, session, 'SET default_transaction_read_only = on');
  expect(() => ask(server, session, insert('62'))).toThrow(
    expect.objectContaining({ code: '25006' }) as Error,
  );
  expect(ask(server, session, 'SELECT 1').rows).toEqual([['1']]);
  expect(server.loseSince(5)).toBe(true);
  expect(server.tables[0]).toBeNull();
  const other = server.open(() => {});
  ask(server, other, inserted);
  expect(server.tables[0]).toContain('"name":"\\\\x61"');
});

test('what a statement, and what a transaction at its commit, has written is seen at once', async () => {
  const { server, written } = await startServer();
  const session = server.open(() => {});
  ask(server, session, 'SELECT 1');
  expect(written).toEqual([]);
  ask(server, session, insert('61'));
  expect(written).toEqual([1]);
  ask(server, session, 'BEGIN');
  ask(server, session, insert('62'));
  ask(server, session, insert('63'));
  expect(written).toEqual([1]);
  ask(server, session, 'COMMIT');
  expect(written).toEqual([1, 3]);
});

async function startServer() {
  const code = await LockCode.load('postgres');
  const engine = code.postgres;
  if (engine === undefined) throw new Error('no PGlite was loaded');
  const world = new World(1, false);
  const options = { name: 'store', drift: 0, wallOffset: 0, timerLatenessMs: 0 };
  const loaded = code.serverCode(() => new SimulatedProcess(world, new SeededRandom(0), options));
  engine.reset(code.schemaOf(loaded));
  const written: number[] = [];
  const server = new SimulatedPostgres(world, {
    engine,
    drift: 0,
    written: (_, [locks]) => written.push((JSON.parse(locks ?? '[]') as unknown[]).length),
  });
  return { world, server, written };
}

function insert(name: string): string {
  return `INSERT INTO locks.locks (name, queued, stolen) VALUES ('\\x${name}', true, 0)`;
}

function ask(server: SimulatedPostgres, session: ServerSession, text: string): Outcome {
  const statement: SentStatement = { text, values: [], names: [] };
  let answer: Outcome | PostgresError | undefined;
  server.execute(session, statement, (result) => {
    answer = result;
  });
  if (answer === undefined) throw new Error('the statement waits');
  if (answer instanceof PostgresError) throw answer;
  return answer;
}
