import { describe, expect, it } from 'vitest';
import { checkRequest, convertArguments } from '../src/request-arguments.ts';

const callback = () => {};

describe('convertArguments', () => {
  it('fills in the defaults', () => {
    const expected = {
      name: 'a',
      mode: 'exclusive',
      ifAvailable: false,
      steal: false,
      signal: undefined,
      callback,
    };
    for (const passed of [
      ['a', callback],
      ['a', {}, callback],
      ['a', undefined, callback],
      ['a', null, callback],
      ['a', { mode: undefined, ifAvailable: undefined, steal: undefined, signal: undefined }, callback],
      ['a', () => {}, callback],
      ['a', {}, callback, 'ignored'],
    ]) {
      expect(convertArguments(passed)).toEqual(expected);
    }
  });

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [12, '12'],
    [1n, '1'],
    [{}, '[object Object]'],
    [{ toString: () => 'own' }, 'own'],
    ['\uD800', '\uD800'],
  ])('takes %s as a name', (name, expected) => {
    expect(convertArguments([name, callback]).name).toBe(expected);
  });

  it('converts members as Web IDL does: truthy, stringified', () => {
    const mode = { toString: () => 'shared' };
    const converted = convertArguments(['a', { ifAvailable: 'no', steal: 0, mode }, callback]);
    expect(converted).toMatchObject({ ifAvailable: true, steal: false, mode: 'shared' });
  });

  it('converts from left to right, each member once, in the order of their names', () => {
    const read: string[] = [];
    const options = new Proxy(
      {},
      {
        get: (_, key) => {
          read.push(String(key));
          return undefined;
        },
      },
    );
    const name = { toString: () => `name${read.push('name')}` };
    convertArguments([name, options, callback]);
    expect(read).toEqual(['name', 'ifAvailable', 'mode', 'signal', 'steal']);
    read.length = 0;
    expect(() => convertArguments([name, options, 'no callback'])).toThrow(TypeError);
    expect(read).toEqual(['name', 'ifAvailable', 'mode', 'signal', 'steal']);
  });

  it('lets through what a getter throws, before it looks at what follows', () => {
    const thrown = new Error('mine');
    const options = {
      get mode() {
        throw thrown;
      },
      signal: 'not a signal',
    };
    expect(() => convertArguments(['a', options, 'no callback'])).toThrow(thrown);
  });

  it.each([
    ['nothing', []],
    ['a name only', ['a']],
    ['a symbol', [Symbol('a'), callback]],
    ['options that are no object', ['a', 'text', callback]],
    ['a number for options', ['a', 1, callback]],
    ['options for a callback', ['a', {}]],
    ['a callback for options', ['a', callback, undefined]],
    ['an unknown mode', ['a', { mode: 'Shared' }, callback]],
    ['null for a mode', ['a', { mode: null }, callback]],
    ['null for a signal', ['a', { signal: null }, callback]],
    ['a look-alike of a signal', ['a', { signal: Object.create(AbortSignal.prototype) }, callback]],
    ['another look-alike', ['a', { signal: { aborted: false, addEventListener: callback } }, callback]],
  ])('refuses %s with a TypeError', (_, passed) => {
    expect(() => convertArguments(passed)).toThrow(TypeError);
  });
});

describe('checkRequest', () => {
  const aborted = AbortSignal.abort('the reason');
  const check = (name: string, options: object) => () =>
    checkRequest(convertArguments([name, options, callback]));
  const notSupported = expect.objectContaining({ name: 'NotSupportedError' });

  it('refuses what the specification refuses, and looks at the signal last', () => {
    for (const [name, options] of [
      ['-', {}],
      ['-a', { signal: aborted }],
      ['a', { steal: true, ifAvailable: true }],
      ['a', { steal: true, mode: 'shared' }],
      ['a', { steal: true, signal: aborted }],
      ['a', { ifAvailable: true, signal: aborted }],
    ] as const) {
      expect(check(name, options)).toThrow(notSupported);
    }
    expect(check('a', { signal: aborted })).toThrow('the reason');
  });

  it('lets the rest pass', () => {
    for (const options of [
      {},
      { steal: true },
      { ifAvailable: true, mode: 'shared' },
      { signal: new AbortController().signal },
    ]) {
      expect(check('a-', options)).not.toThrow();
    }
  });
});
