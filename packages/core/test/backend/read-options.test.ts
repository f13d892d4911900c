import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import {
  matching,
  milliseconds,
  oneOf,
  optional,
  readOptions,
  text,
  wholeNumber,
} from '../../src/backend/read-options.ts';

const table = {
  path: text('the path of a node', /^\//),
  maxPollMs: optional(milliseconds(1, 1_000), 25),
  count: optional(wholeNumber(1, 9)),
  durable: optional(oneOf(true, false), false),
};

function messageOf(given: unknown, elsewhere?: Record<string, string>): string {
  try {
    readOptions('tableBackend()', given, table, elsewhere);
  } catch (error) {
    expect(error).toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

test('every option of the table is given, with its default where it was not given', () => {
  expect(readOptions('tableBackend()', { path: '/a' }, table)).toEqual({
    path: '/a',
    maxPollMs: 25,
    count: undefined,
    durable: false,
  });
  expect(readOptions('tableBackend()', { path: '/a', maxPollMs: 1, durable: true, count: 9 }, table)).toEqual(
    { path: '/a', maxPollMs: 1, count: 9, durable: true },
  );
});

test('no options stand for an empty object, and undefined for an option that is not given', () => {
  const none = { durable: optional(oneOf(true, false), false) };
  expect(readOptions('tableBackend()', undefined, none)).toEqual({ durable: false });
  expect(readOptions('tableBackend()', { durable: undefined }, none)).toEqual({ durable: false });
});

test('a refusal names the function, the option, what is allowed and the value', () => {
  expect(messageOf({ path: 'a' })).toBe('tableBackend(): path must be the path of a node, not "a".');
  expect(messageOf({})).toBe('tableBackend(): path must be the path of a node, not undefined.');
  expect(messageOf({ path: '/', maxPollMs: Number.NaN })).toBe(
    'tableBackend(): maxPollMs must be a number of milliseconds from 1 to 1000, not NaN.',
  );
  expect(messageOf({ path: '/', count: 1.5 })).toBe(
    'tableBackend(): count must be a whole number from 1 to 9, not 1.5.',
  );
  expect(messageOf({ path: '/', durable: null })).toBe(
    'tableBackend(): durable must be true or false, not null.',
  );
});

test.each([['maxpollms'], ['maxPoll'], ['maxPolMs'], ['mxaPollMs'], ['MAXPOLLMS']])(
  'the misspelt option %s is refused with the one that was meant and all that exist',
  (name) => {
    expect(messageOf({ path: '/', [name]: 5 })).toBe(
      `tableBackend() has no option "${name}". Did you mean maxPollMs? It has path, maxPollMs, count, durable.`,
    );
  },
);

test.each(['timeout', 'toString', '', '__proto', 'x'.repeat(500)])(
  'an option %o that is like none is refused with all that exist',
  (name) => {
    const message = messageOf({ path: '/', [name]: undefined });
    expect(message).toContain('It has path, maxPollMs, count, durable.');
    expect(message).not.toContain('Did you mean');
    expect(message.length).toBeLessThan(150);
  },
);

test('an option that belongs to another function is refused with the name of that function', () => {
  expect(messageOf({ path: '/', signal: undefined }, { signal: 'acquire()' })).toContain(
    'has no option "signal". It belongs to acquire().',
  );
});

test.each<[unknown, string, string?]>([
  [null, 'null'],
  ['/a', '"/a"', ' Pass { path } with it.'],
  [5, '5'],
  [[], 'an empty array'],
  [['/a'], 'an array'],
  [() => {}, 'a function'],
  [new AbortController().signal, 'an object of AbortSignal'],
  [Promise.resolve({}), 'a promise: await it first'],
  [new Map([['path', '/a']]), 'an object of Map'],
])('%o is refused as an options object', (given, shown, hint = '') => {
  expect(messageOf(given)).toBe(`tableBackend(): the options must be a plain object, not ${shown}.${hint}`);
});

test('options of another realm, without a prototype, frozen, and of a class are read', () => {
  class Config {
    path = '/a';
  }
  const bare = Object.assign(Object.create(null) as object, { path: '/a' });
  for (const given of [
    runInNewContext(`({ path: '/a' })`),
    bare,
    Object.freeze({ path: '/a' }),
    new Config(),
  ])
    expect(readOptions('tableBackend()', given, table).path).toBe('/a');
});

test('every option is read once', () => {
  let reads = 0;
  const given = {
    get path() {
      reads += 1;
      return reads === 1 ? '/a' : 5;
    },
  };
  expect(readOptions('tableBackend()', given, table).path).toBe('/a');
  expect(reads).toBe(1);
});

test('a secret is not shown', () => {
  const secret = { uri: text('a URL such as db://user@host', /^db:/, true) };
  const uri = 'postgers://admin:hunter2@host';
  expect(() => readOptions('tableBackend()', { uri }, secret)).toThrow(
    expect.objectContaining({ message: 'tableBackend(): uri must be a URL such as db://user@host.' }),
  );
});

test('a reader may be any function, and may read options of its own', () => {
  const isDate = (value: unknown): value is Date => value instanceof Date;
  const nested = {
    since: matching('a date', isDate),
    fencing: (value: unknown, what: string) => readOptions(what, value, { schema: text('a name', /^\w+$/) }),
  };
  const since = new Date();
  expect(readOptions('f()', { since, fencing: { schema: 'a' } }, nested).fencing.schema).toBe('a');
  expect(() => readOptions('f()', { since, fencing: { shema: 'a' } }, nested)).toThrow(
    expect.objectContaining({
      message: 'f(): fencing has no option "shema". Did you mean schema? It has schema.',
    }),
  );
});
