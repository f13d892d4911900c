import { type LineChange, mutantsOf } from './line-mutant.ts';

const of = (script: string, changes: readonly LineChange[]) =>
  mutantsOf('redis', `redis-protocol/src/scripts/${script}.lua`, changes);

/** The lines of the scripts of Redis. */
export const redisScriptMutants = [
  ...of('abandon', [
    [
      "local queued = redis.call('ZREM', KEYS[3], unpack(ARGV, 3))",
      'local queued = 0',
      'an abandoned waiter stays in the queue',
    ],
    ["if released then redis.call('DEL', KEYS[1]) end", '', 'an abandoned hold stays'],
    [
      "local released = held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|'",
      'local released = held',
      'an abandon ends the hold of another',
    ],
    ['(queued > 0 and not held)', '(false)', 'an abandon of the head of a free lock serves nobody'],
    [
      'held, m = shares(KEYS[1], holders, held, ARGV[1], true)',
      'held, m = shares(KEYS[1], holders, held, nil, true)',
      'an abandoned share stays',
    ],
    [
      'return hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], m) or (released and 1 or 0)',
      'return 1',
      'an abandon serves nobody',
    ],
    [
      "if queued > 0 and redis.call('ZCOUNT', KEYS[3], '0', '+inf') == 0 then",
      'if false then',
      'a queue stays when its last waiter gave up',
    ],
  ]),
  ...of('acquire', [
    [
      "ARGV[3], 'NX', 'PX', ARGV[2])",
      "ARGV[3], 'PX', ARGV[2])",
      'the fast path takes a lock that another holds',
    ],
    ["ARGV[3], 'NX', 'PX', ARGV[2])", "ARGV[3], 'NX')", 'a hold of the fast path never ends'],
    [
      'if not before or (#before == #token and before < token) then return token end',
      'if true then return token end',
      'the fast path overtakes the queue',
    ],
    [
      "if type(before) == 'string' then call('SET', KEYS[2], before) end",
      '',
      'the fast path does not put the token back',
    ],
    ["call('DEL', KEYS[1])\nend\nelseif", 'end\nelseif', 'the fast path does not put the lock back'],
    [
      "(reader or weight ~= '' and used + weight <= limit + 0)",
      '(true)',
      'the fast path of a share takes any number of permits, or a writer',
    ],
    [
      'used + weight <= limit + 0',
      'used + weight <= limit + 1',
      'the fast path of a share takes one permit too many',
    ],
    [
      'if fits and (not held or first > ends - ttl) then',
      'if fits then',
      'the fast path of a share counts shares that have ended',
      'they count as taken: what does not fit beside them takes the slow path, which looks at their ends',
    ],
    [
      "'^%*(%d+)|(%d+)|%-|(%d+)|(%d+)$'",
      "'^%*(%d+)|(%d+)|[+-]|(%d+)|(%d+)$'",
      'the fast path of a share overtakes the queue beside shares',
      'the token key says too that somebody waits in the slot',
    ],
    [
      'if not before or (#before == #token and before < token) then\nif not held',
      'if true then\nif not held',
      'the fast path of a share overtakes the queue of a free lock',
    ],
    [
      "if not held and call('HLEN', KEYS[4]) > 0 then call('DEL', KEYS[4]) end",
      '',
      'the fast path counts shares of before',
    ],
    [
      "if call('HSETNX', KEYS[4], ARGV[1], share) == 1 then",
      "if call('HSET', KEYS[4], ARGV[1], share) >= 0 then",
      'a repeated attempt takes its permits twice',
    ],
    [
      'if longest or shortest or not reader then',
      'if longest or not reader then',
      'the fast path does not note a reader that ends earlier',
    ],
    [
      'if longest or shortest or not reader then',
      'if shortest or not reader then',
      'the fast path does not note a reader that ends later',
    ],
    [
      "'|' .. used + weight .. '|-|'",
      "'|' .. used .. '|-|'",
      'the fast path does not count the permits that it takes',
    ],
    [
      "'PX', ttl + ahead)",
      "'PX', ttl)",
      'a mark ends before the time that it says',
      'the mark has its time at least: only the part that it was written ahead is lost, and the next share writes it again',
    ],
    [
      "elseif type(before) == 'string' then\ncall('SET', KEYS[2], before)",
      'elseif false then',
      'the fast path of a share does not put the token back',
    ],
    [
      'served, holds, left = {}, read_state(r)',
      'read_state(r)\nserved = {}',
      'a repeated steal steals again',
    ],
    [
      'if not with and queued(r) then',
      'if not with and not steals and queued(r) then',
      'a steal contradicts who waits',
    ],
    [
      "clear(r.holders)\ncall('DEL', r.lock)",
      "call('DEL', r.lock)",
      'a steal leaves the shares of before',
      'they count no more without a mark, and whoever takes the next share clears them',
    ],
    ["call('DEL', r.lock)\nr.mark = nil", '', 'a steal leaves the mark of before'],
    [
      "served = queued(r) and weight ~= '' and hand_off(r.lock, r.token, r.queue, notify or '', r.mark) or served",
      '',
      'a reader that steals lets no other readers in',
    ],
    ['if holds then return reply(served, holds, left) end', '', 'a repeated attempt waits for itself'],
    [
      'if with and math.max(with, 0) ~= r.asked and',
      'if false and',
      'permits with another limit wait in one queue',
    ],
    ['if free_for(r) then', 'if not r.held then', 'what is free goes to a newcomer before the queue'],
    [
      'local last = next_token(r.token, now_ms + math.max(queue_ms, alive_ms + slack_ms))',
      'local last = now - now % 1000000',
      'a waiter has the position of another',
    ],
    [
      'next_token(r.token, now_ms + math.max(queue_ms, alive_ms + slack_ms))',
      'next_token(r.token, 0)',
      'the token key does not say that somebody waits',
    ],
    ['is_kept, position, member)', 'is_kept)', 'a waiter does not join the queue'],
    [
      "if r.asked > 0 then call('ZADD', r.queue, 'NX', -(r.mark and r.mark.limit or r.asked), '#') end",
      '',
      'the limit of waiting permits is not kept',
    ],
    [
      'keep_alive(r.queue, notify, alive_ms, is_kept, position, member)',
      "call('ZADD', r.queue, 'LT', position, member)",
      'a process that begins to wait does not count as alive',
    ],
    ['if r.held then mark(r.lock, r.held) end', '', 'the holder does not learn that somebody waits'],
    [
      "r.id .. '|' .. ARGV[2] .. ",
      "r.id .. '|' .. math.min(ARGV[2], 50) .. ",
      'a hand-off lasts for less than its ttl',
    ],
  ]),
  ...of('check', [
    [
      'if not listens(mode, string.sub(notify, 2)) then notify, silent = silent, notify end',
      '',
      'a process that hears nothing waits for messages',
    ],
    [
      "if moved[1] then redis.call('ZREM', queue, unpack(moved)) end",
      '',
      'a waiter that moved stands in the queue twice',
    ],
    [
      'if m then ends, minted = find_share(holders, id) end',
      '',
      'a check does not find a share that was handed off',
    ],
    ['report(id, minted, ends - now_ms)', '', 'a check does not report a share that was handed off'],
    [
      "report(id, string.match(held, '^[^|]*|[+-]|(%d+)|'), redis.call('PTTL', lock))",
      '',
      'a check does not report a hand-off',
    ],
    ['false, unpack(waiting))', 'false)', 'a queue that was lost does not form again'],
    [
      "if asked then redis.call('ZADD', queue, 'NX', -(m and m.limit > 0 and m.limit or asked), '#') end",
      '',
      'the limit of waiting permits that were passed over is lost',
    ],
    [
      'keep_alive(queue, notify, alive_ms, false, unpack(waiting))',
      "redis.call('ZADD', queue, 'LT', unpack(waiting))",
      'a check does not keep its process alive',
    ],
    [
      'if held and not m then\nmark(lock, held)',
      'if held and not m then',
      'a holder does not learn of waiters that came back',
    ],
    [
      'local handed = hand_off(lock, token, queue, notify, m, true) or {}',
      'local handed = {}',
      'a check does not serve a free lock',
    ],
    [
      'report(handed[i], handed[i + 1], times[handed[i]] or 0)',
      '',
      'a check does not report what it handed off',
    ],
  ]),
  ...of('downgrade', [
    ['clear(KEYS[4])', '', 'a downgrade brings shares of before back'],
    [
      "local left = math.max(1, redis.call('PTTL', KEYS[1]))",
      'local left = 3600000',
      'a downgrade gives an hour',
    ],
    ['add_share(KEYS[4], m, id, left, token, 0, label)', '', 'a downgrade frees the lock'],
    [
      "flag == '+' and hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], m) or {}",
      '{}',
      'a downgrade lets no readers in',
    ],
    [
      'return ends and ends > now_ms and { ends - now_ms } or 2',
      'return 2',
      'a repeated downgrade is taken for a loss',
    ],
  ]),
  ...of('force-release', [
    ["redis.call('DEL', KEYS[1], KEYS[4])", '', 'a forced release leaves shares'],
    [
      "~= ARGV[2] .. '|' then return 0 end\nredis.call('DEL', KEYS[1])",
      "~= ARGV[2] .. '|' then return 0 end",
      'a forced release leaves the holder',
    ],
    [
      'ipairs(hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[1], m) or {})',
      'ipairs({})',
      'a forced release serves nobody',
    ],
  ]),
  ...of('many', [
    ['elseif not free_for(r) then', 'elseif false then', 'several locks are taken at once that others hold'],
    [
      'elseif not free_for(r) then',
      'elseif r.held then',
      'several locks are taken at once before those who wait',
    ],
    [
      "local _, holds, left = serve_and_read(r, '')",
      'local holds, left = read_state(r)',
      'an attempt for several locks does not serve their queues',
    ],
  ]),
  ...of('release', [
    [
      "local time = limit and call('TIME')\nif limit and first + 0 > time[1] * 1000 + math.floor(time[2] / 1000) then",
      "local time = limit and call('TIME')\nif limit then",
      'a share is given back as if none had ended',
    ],
    [
      "'^%*(%d+)|(%d+)(|%-|(%d+)|.*)'",
      "'^%*(%d+)|(%d+)(|[+-]|(%d+)|.*)'",
      'a share that is given back serves nobody',
    ],
    ["if call('HDEL', KEYS[4], ARGV[1]) == 0 then return 0 end", '', 'the release of a share leaves it'],
    [
      "if call('HLEN', KEYS[4]) == 0 then\ncall('DEL', KEYS[1])",
      "if false then\ncall('DEL', KEYS[1])",
      'the mark of the last share stays',
    ],
    [
      "call('SET', KEYS[1], '*' .. limit .. '|' .. used - share .. rest, 'KEEPTTL')",
      '',
      'permits that are given back alone stay taken',
    ],
    [
      "if found == alone then return call('DEL', KEYS[1]) end",
      'if found == alone then return 1 end',
      'a release leaves the lock',
    ],
    ["if found ~= ARGV[1] .. '|+' then return 0 end", '', 'a release ends the hold of another'],
    ["or share and 1 or call('DEL', KEYS[1])", 'or 1', 'a release leaves the lock where somebody waits'],
    [
      'if not ends or ends <= now_ms then return 0 end',
      'if not ends then return 0 end',
      'the release of a share that has ended is taken for one',
    ],
    [
      'return hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], m) or share',
      'return share',
      'a release serves nobody',
    ],
  ]),
  ...of('release-key', [
    [
      "then return redis.call('DEL', KEYS[1]) end",
      'then return 1 end',
      'a release while a slot moves leaves the lock',
    ],
    [
      "if mark then redis.call('SET', KEYS[1], mark .. '0' .. last, 'KEEPTTL') end",
      '',
      'a share that is given back while a slot moves stays counted',
      'until the time of the share is over',
    ],
  ]),
  ...of('renew', [
    [
      "start == own and redis.call('PEXPIRE', lock, ARGV[2 * i]) or 2",
      "redis.call('PEXPIRE', lock, ARGV[2 * i])",
      'a renewal renews the hold of another',
    ],
    [
      'local start = string.sub(held, 1, #own)',
      "local id = string.sub(own, 1, string.find(own, '|', 1, true))\nlocal start = string.sub(held, 1, #id) == id and own",
      'a renewal confirms a later grant of the same acquisition',
    ],
    [
      "start == own and redis.call('PEXPIRE', lock, ARGV[2 * i]) or 2",
      'start == own and 1 or 2',
      'the renewal of a lock is a lie',
    ],
  ]),
  ...of('renew-part', [
    [
      'if not renew_share(KEYS[1], ARGV[2], ARGV[3], ARGV[1]) then return 2 end',
      '',
      'the renewal of a share while a slot moves is a lie',
    ],
    [
      "redis.call('SET', KEYS[1], mark, 'PX', m.last - now_ms)",
      '',
      'a mark is not renewed while a slot moves',
    ],
  ]),
  ...of('renew-shares', [
    ["redis.call('PEXPIRE', lock, ttl)", '', 'the renewal of a lock that may be shared is a lie'],
    [
      'if own == id and of == token then',
      'if not parse_mark(held) then',
      'a renewal renews the writer after a reader',
    ],
    [
      'if m.first ~= first or m.last ~= last then write_mark(lock, holders, m, m.flag) end',
      '',
      'the mark is not renewed with its shares',
    ],
    ['extend(m, now_ms + ttl, ttl)', '', 'the ends of shares that are renewed are not noted'],
  ]),
  ...of('resize', [
    ['m.limit = ARGV[1] + 0', '', 'a resize does not change the permits that are held'],
    [
      "redis.call('ZADD', KEYS[3], -ARGV[1], '#')",
      '',
      'a resize does not change the permits that are waited for',
    ],
    [
      'local reply = hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], m) or {}',
      'local reply = {}',
      'a resize lets nobody in',
    ],
  ]),
];
