import { expect, test } from 'vitest';
import { SharedConnection } from '../../src/redis/shared-connection.ts';

function connected() {
  const ran: string[] = [];
  const late: string[] = [];
  const connection = new SharedConnection((what) => late.push(what));
  const send = (...command: [string, ...string[]]) =>
    connection.execute(
      command,
      () => command[0],
      () => {
        if (command[0] === 'UNKNOWN') throw new Error('ERR unknown command');
      },
      () => {
        ran.push(command.join(' '));
        return `${command[0]} done`;
      },
    );
  return { connection, send, ran, late };
}

test('within MULTI a command is queued, EXEC executes it, and DISCARD forgets it', () => {
  const { send, ran, late } = connected();
  expect([send('MULTI'), send('GET', 'a')]).toEqual(['OK', 'QUEUED']);
  expect(ran).toEqual([]);
  expect(send('EXEC')).toEqual(['GET done']);
  expect([ran, late]).toEqual([['GET a'], ['GET']]);
  send('MULTI');
  send('GET', 'b');
  expect(send('DISCARD')).toBe('OK');
  expect(ran).toEqual(['GET a']);
  expect(() => send('EXEC')).toThrow('ERR EXEC without MULTI');
});

test('EXEC executes nothing behind a command that the server does not know', () => {
  const { send, ran } = connected();
  send('MULTI');
  send('GET', 'a');
  expect(() => send('UNKNOWN')).toThrow('ERR unknown command');
  expect(() => send('EXEC')).toThrow('EXECABORT');
  expect(ran).toEqual([]);
});

test('a connection that listens refuses other commands until it listens to nothing', () => {
  const { send, connection } = connected();
  expect(send('SUBSCRIBE', 'news')).toEqual(['subscribe', 'news', 1]);
  expect(() => send('GET', 'a')).toThrow("Can't execute 'get'");
  expect(connection.isPlain).toBe(false);
  expect(send('UNSUBSCRIBE', 'news')).toEqual(['unsubscribe', 'news', 0]);
  expect(send('GET', 'a')).toBe('GET done');
});

test('SELECT chooses a database, and RESET makes the connection as good as new', () => {
  const { send, connection } = connected();
  send('SELECT', '1');
  expect(connection.database).toBe(1);
  send('MULTI');
  expect(send('SELECT', '2')).toBe('QUEUED');
  expect(connection.database).toBe(1);
  expect(send('RESET')).toBe('RESET');
  expect(connection.isPlain).toBe(true);
});
