import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LuaScripts } from '../../src/redis/lua-scripts.ts';
import { SimulatedRedis } from '../../src/redis/simulated-redis.ts';

let lua: LuaScripts;
let micros: number;
let server: SimulatedRedis;
const create = () => new SimulatedRedis({ lua, micros: () => micros });
const failure = (...command: string[]): string => {
  try {
    server.execute(command);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`${command.join(' ')} did not fail`);
};

beforeAll(async () => {
  lua = await LuaScripts.load();
});
beforeEach(() => {
  micros = 1_763_840_000_000_000;
  server = create();
});

describe('time', () => {
  it('a key lasts for its last millisecond, and no longer', () => {
    server.execute(['SET', 'key', 'value', 'PX', '50']);
    micros += 50_999;
    expect(server.execute(['PTTL', 'key'])).toBe(0);
    expect(server.execute(['GET', 'key'])).toBe('value');
    micros += 1;
    expect(server.execute(['PTTL', 'key'])).toBe(-2);
    expect(server.keys()).toEqual([]);
  });

  it('a plain SET removes the ttl, KEEPTTL and SETRANGE keep it', () => {
    server.execute(['SET', 'key', 'value', 'PX', '50']);
    server.execute(['SETRANGE', 'key', '1', 'A']);
    server.execute(['SET', 'key', 'other', 'KEEPTTL']);
    expect(server.execute(['PTTL', 'key'])).toBe(50);
    server.execute(['SET', 'key', 'third']);
    expect(server.execute(['PTTL', 'key'])).toBe(-1);
  });

  it('stands still while a script runs', () => {
    const script =
      "local a = redis.call('TIME') local b = redis.call('TIME') return { a[1] .. a[2], b[1] .. b[2] }";
    const [first, second] = server.execute(['EVAL', script, '0']) as string[];
    expect(first).toBe(second);
  });
});

describe('scripts', () => {
  it('replies become what Redis makes of Lua values', () => {
    const script = "return { 3.99, 'text', true, false, { ok = 'FINE' }, 7, nil, 8 }";
    expect(server.execute(['EVAL', script, '0'])).toEqual([3, 'text', 1, null, 'FINE', 7]);
  });

  it('Lua values are what Redis makes of replies', () => {
    server.execute(['HSET', 'hash', 'field', 'value']);
    const script = `
      local wrong = redis.pcall('GET', 'hash')
      return { type(redis.call('GET', 'absent')), type(redis.call('DEL', 'absent')), redis.call('SET', 'a', 1).ok, wrong.err }`;
    expect(server.execute(['EVAL', script, '0'])).toEqual([
      'boolean',
      'number',
      'OK',
      'WRONGTYPE Operation against a key holding the wrong kind of value',
    ]);
  });

  it('a failure keeps what was written before, and says where it arose', () => {
    const script = "redis.call('SET', 'a', '1')\nredis.call('HGET', 'a', 'b')";
    expect(failure('EVAL', script, '0')).toMatch(/^WRONGTYPE .* script: [0-9a-f]{40}, on @user_script:2\.$/);
    expect(server.execute(['GET', 'a'])).toBe('1');
  });

  it('an unknown command, an unknown option and an unknown script are errors', () => {
    expect(failure('INCR', 'a')).toMatch(/^ERR unknown command 'INCR'/);
    expect(failure('SET', 'a', 'b', 'EXAT', '5')).toBe('ERR syntax error');
    expect(failure('EVAL', "return redis.call('INCR', 'a')", '0')).toMatch(/^ERR unknown command 'INCR'/);
    expect(failure('EVALSHA', 'f'.repeat(40), '0')).toMatch(/^NOSCRIPT/);
  });

  it('creates no globals, and reads no clock and no random number', () => {
    expect(failure('EVAL', 'leak = 1', '0')).toMatch(/^ERR/);
    expect(failure('EVAL', 'return os.time()', '0')).toMatch(/nonexistent global variable 'os'/);
    expect(server.execute(['EVAL', 'return tostring(math.random)', '0'])).toBe('nil');
  });

  it('counts bytes, not characters', () => {
    server.execute(['SET', 'key', 'ünï']);
    expect(server.execute(['EVAL', "return #redis.call('GET', KEYS[1])", '1', 'key'])).toBe(5);
    expect(server.execute(['GET', 'key'])).toBe('ünï');
  });
});

describe('faults', () => {
  it('a restart ends subscriptions and forgets scripts; the data is kept on demand', () => {
    const heard: string[] = [];
    server.subscribe('channel', (text) => heard.push(text));
    const sha1 = String(server.execute(['SCRIPT', 'LOAD', 'return 1']));
    server.execute(['SET', 'key', 'value', 'PX', '100']);
    server.restart({ keepData: true });
    expect(server.execute(['PUBLISH', 'channel', 'text'])).toBe(0);
    expect(heard).toEqual([]);
    expect(failure('EVALSHA', sha1, '0')).toMatch(/^NOSCRIPT/);
    expect(server.execute(['PTTL', 'key'])).toBe(100);
    server.restart({ keepData: false });
    expect(server.keys()).toEqual([]);
  });

  it('a replica that lags loses the last writes when it is promoted, whole scripts at a time', () => {
    const replica = create();
    server.execute(['SET', 'before', '1']);
    replica.replicateFrom(server);
    expect(replica.execute(['GET', 'before'])).toBe('1');
    server.execute(['EVAL', "redis.call('SET', 'a', '1') redis.call('SET', 'b', '1')", '0']);
    server.execute(['SET', 'c', '1', 'PX', '100']);
    expect(replica.lag).toBe(2);
    expect(() => replica.execute(['SET', 'd', '1'])).toThrow(/^READONLY/);
    replica.receive(1);
    replica.promote();
    expect(replica.keys().toSorted()).toEqual(['a', 'b', 'before']);
    replica.execute(['SET', 'd', '1']);
    // The former master comes back as a replica, and loses what only it had.
    server.replicateFrom(replica);
    expect(server.keys().toSorted()).toEqual(['a', 'b', 'before', 'd']);
  });

  it('a replica gets ttls as times, and messages too', () => {
    const replica = create();
    replica.replicateFrom(server);
    const heard: string[] = [];
    replica.subscribe('channel', (text) => heard.push(text));
    server.execute(['SET', 'key', 'value', 'PX', '100']);
    server.execute(['PUBLISH', 'channel', 'text']);
    micros += 40_000;
    replica.receive();
    expect(replica.execute(['PTTL', 'key'])).toBe(60);
    expect(heard).toEqual(['text']);
  });

  it('an eviction removes one key', () => {
    server.execute(['SET', 'a', '1']);
    server.execute(['SET', 'b', '1']);
    expect(server.evict(() => 0)).toBe('a');
    expect(server.keys()).toEqual(['b']);
    expect(create().evict(() => 0)).toBeUndefined();
  });
});
