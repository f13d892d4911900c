import { type LineChange, mutantsOf } from './line-mutant.ts';

const of = (fragment: string, changes: readonly LineChange[]) =>
  mutantsOf('redis', `redis-protocol/src/scripts/fragments/${fragment}.lua`, changes);

/** The lines that several scripts of Redis share. */
export const redisFragmentMutants = [
  ...of('attempt', [
    [
      'if r.held and string.sub(r.held, 1, #own) == own then',
      'if false then',
      'a repeated attempt does not find its own hold',
    ],
    [
      'if ends then return tonumber(token), ends - now_ms end',
      '',
      'a repeated attempt does not find its own share',
    ],
    [
      "r.queued = (r.mark or r.horizon * 1000 > now) and redis.call('EXISTS', r.queue) == 1",
      'r.queued = false',
      'an attempt does not look at the queue',
    ],
    [
      'if token or (r.held and not r.ended) or not queued(r) then',
      'if true then',
      'an attempt does not serve the waiters of a lock that ended',
    ],
    [
      'fits(r.weight, r.asked, r.mark)) and not queued(r)',
      'fits(r.weight, r.asked, r.mark))',
      'what is free goes to a newcomer',
    ],
    ["r.label, 'PX', ttl)", 'r.label)', 'an exclusive hold never ends'],
    ['clear(r.holders)', '', 'shares of before count again with the next share'],
    [
      'add_share(r.holders, r.mark, r.id, ttl, token, r.weight, r.label)',
      '',
      'a share is granted and not written',
    ],
    [
      'next_token(r.token, r.horizon or 0)',
      'parse_token(redis.call("GET", r.token))',
      'a grant has the token of the one before',
    ],
    ['next_token(r.token, r.horizon or 0)', 'now', 'the token of a grant is not kept'],
    [
      "_, r.horizon = parse_token(redis.pcall('GET', r.token))",
      'r.horizon = 0',
      'an attempt does not read that somebody waits in the slot',
    ],
    [
      "local flag = queued(r) and '+' or '-'",
      "local flag = '-'",
      'a grant ahead of the queue does not note that others wait',
    ],
  ]),
  ...of('enqueue', [
    ["if at then redis.call('SETRANGE', lock, at, '+') end", '', 'a hold does not learn that somebody waits'],
    [
      "redis.call('ZADD', queue, 'LT', string.format('-%.0f', now_ms + alive_ms), '@' .. notify, ...)",
      "redis.call('ZADD', queue, 'LT', ...)",
      'a process that waits does not count as alive',
    ],
    ["'ZADD', queue, 'LT',", "'ZADD', queue,", 'a repeated attempt goes to the end of the queue'],
    [
      "if not is_kept and redis.call('PTTL', queue) < alive_ms then redis.call('PEXPIRE', queue, alive_ms + slack_ms) end",
      '',
      'a queue never ends',
    ],
    ['is_kept = is_kept and added < 2', '', 'a queue that a known process begins never ends'],
  ]),
  ...of('hand-off', [
    ["if not head[1] then\nredis.call('DEL', queue)", 'if not head[1] then', 'a queue without waiters stays'],
    [
      "local alive = process == own or -(redis.call('ZSCORE', queue, '@' .. mode .. channel) or 0) * 1000 >= now",
      'local alive = true',
      'a lock is handed to dead processes',
    ],
    [
      "local alive = process == own or -(redis.call('ZSCORE', queue, '@' .. mode .. channel) or 0) * 1000 >= now",
      'local alive = process == own',
      'the waiters of other processes are passed over',
    ],
    [
      "if weight ~= '' and weight ~= '0' and not m then of = -(redis.call('ZSCORE', queue, '#') or -weight) end",
      '',
      'the limit of waiting permits is not read',
    ],
    ['local fit = fits(weight, of, m)', 'local fit = true', 'every waiter fits'],
    [
      "if mode == '=' then return redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 end",
      "if mode == '=' then return true end",
      'a lock is handed to a process that does not listen',
    ],
    [
      "if alive and (not fit or mode == '!' and process ~= own) then break end",
      "if alive and mode == '!' and process ~= own then break end",
      'a waiter that does not fit gets the lock',
    ],
    [
      "if alive and (not fit or mode == '!' and process ~= own) then break end",
      'if alive and not fit then break end',
      'a waiter that hears nothing is handed the lock by others',
    ],
    [
      'last, horizon = next_token(token, now_ms + queue_ms)',
      'last, horizon = parse_token(redis.call("GET", token))',
      'a hand-off has the token of the grant before',
    ],
    ['last = last + 1', '', 'two hand-offs of one step have the same token'],
    [
      "minted .. '|' .. label, 'PX', px)",
      "minted .. '|' .. label)",
      'a hand-off that nobody renews never ends',
    ],
    ["local flag = head[2] and '+' or '-'", "local flag = '-'", 'a hand-off does not note that others wait'],
    ['clear(holders)\nm = { limit', 'm = { limit', 'shares of before count again after a hand-off'],
    ['add_share(holders, m, id, px, minted, weight, label)', '', 'a share is handed off and not written'],
    [
      "if type(told) ~= 'number' then redis.pcall('PUBLISH', channel, text) end",
      '',
      'a hand-off is not told',
    ],
    [
      'if not share or m.limit > 0 and m.used >= m.limit then',
      'if share and m.limit > 0 and m.used >= m.limit then',
      'an exclusive lock is handed to all who wait',
    ],
    [
      "if several then redis.call('SET', token, format_token(last, horizon)) end",
      '',
      'the tokens of several hand-offs are not kept',
    ],
    [
      "if m then write_mark(lock, holders, m, head[1] and '+' or '-') end",
      '',
      'the mark of shares that were handed off is not written',
    ],
    [
      "write_mark(lock, holders, m, head[1] and '+' or '-')",
      "write_mark(lock, holders, m, '-')",
      'shares do not note that somebody waits',
    ],
  ]),
  ...of('shares', [
    [
      'm.first = math.min(m.first or ends, ends)',
      'm.first = m.first or ends',
      'the end of a shorter share is not noticed',
    ],
    [
      'if ends > (m.last or 0) then m.last = ends + math.floor(px / 8) end',
      'm.last = m.last or ends',
      'shares end with the one that came first',
    ],
    [
      "if redis.call('HSET', holders, id, share) == 1 then m.used = m.used + weight end",
      "redis.call('HSET', holders, id, share)",
      'permits are not counted when they are taken',
    ],
    [
      "if redis.call('HSET', holders, id, share) == 1 then m.used = m.used + weight end",
      "redis.call('HSET', holders, id, share)\nm.used = m.used + weight",
      'a waiter that stood in the queue twice takes its permits twice',
      'too rare in these schedules: a test of the scripts finds it',
    ],
    [
      'if not ends or ends <= now_ms or of ~= token then',
      'if not ends or of ~= token then',
      'a share that has ended is renewed',
    ],
    [
      "redis.call('HSET', holders, id, now_ms .. '|' .. px .. string.match(share, '^%d+|%d+(.*)$'))",
      '',
      'the renewal of a share is a lie',
    ],
    ["if redis.call('HLEN', holders) == 0 then", 'if false then', 'a mark without shares stays'],
    ["redis.call('SET', lock, mark, 'PX', left)", "redis.call('SET', lock, mark)", 'a mark never ends'],
    ["redis.call('PEXPIRE', holders, left + 120000)", '', 'the shares of a lost mark stay for ever'],
    ['if gone then _, _, weight = find_share(holders, gone) end', '', 'a share that is given back stays'],
    ['m.used = m.used - weight', '', 'permits that are given back stay taken'],
    ['if m.first <= now_ms then', 'if false then', 'shares that have ended count on'],
    [
      'local ends, _, weight = parse_share(all[i + 1])\nif not ends or ends <= now_ms then',
      'local ends, _, weight = parse_share(all[i + 1])\nif not ends then',
      'a share that has ended counts on when shares are counted',
    ],
    ['else\nm.used = m.used + weight', 'else', 'permits are lost when shares are counted again'],
    [
      "if weight == '' then return not m end",
      "if weight == '' then return true end",
      'a writer fits beside readers',
    ],
    ["return (weight == '0') == (of == 0) and", 'return', 'readers and permits fit together'],
    ['(m and m.used or 0) + weight <= of', '(true)', 'any number of permits fits'],
    [
      '(m and m.used or 0) + weight <= of',
      '(m and m.used or 0) + weight <= of + 1',
      'one permit too many fits',
    ],
  ]),
  ...of('token', [
    [
      "return tonumber(last or '0'), tonumber(horizon or '0') or 0",
      "return tonumber(last or '0'), 0",
      'nobody reads that somebody waits in the slot',
    ],
    [
      "return tonumber(last or '0'), tonumber(horizon or '0') or 0",
      "return 0, tonumber(horizon or '0') or 0",
      'the last token is not read',
    ],
    [
      "horizon * 1000 > now and '%.0f;%.0f' or '%.0f'",
      "'%.0f'",
      'nobody writes that somebody waits in the slot',
    ],
    [
      "redis.pcall('GETSET', key, format_token(now, horizon))",
      "redis.pcall('GET', key)",
      'no token is kept by the slow path',
    ],
    [
      'if last < now and kept <= horizon and',
      'if kept <= horizon and',
      'the slow path gives the server time, although the last token is ahead of it',
    ],
    [
      'if last < now and kept <= horizon and',
      'if last < now and',
      'a grant forgets that somebody waits in the slot',
      'all simulated processes write the same horizon; a test of the scripts finds it',
    ],
    [
      'last, horizon = math.max(last + 1, now), math.max(kept, horizon)',
      'last, horizon = math.max(last + 1, now), horizon',
      'a grant forgets that somebody waits in the slot, where it writes the token again',
      'all simulated processes write the same horizon; a test of the scripts finds it',
    ],
    [
      "redis.call('SET', key, format_token(last, horizon))\nreturn",
      'return',
      'the token that is ahead of the server time is not kept',
    ],
  ]),
];
