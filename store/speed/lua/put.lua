-- Writes tasks of one slot of the queue index, each only if it is still as the caller has seen it.
-- KEYS  1 units, 2 items, 3 gone (now), 4 gone (before), 5 delayed, 6 active, 7 oldest, 8 needs, 9.. lines
-- ARGV  1 epoch, 2 life of removals in seconds, 3 number of needs n, then n times: hash, text;
--       then the names of the lines, one for each key from 9 on;
--       then for each task 10 fields: id, item as seen ('' none), removal as seen ('' none), item to write
--       ('' none), removal to write ('' none to write, '-' to forget), place before and after (0 none,
--       1 delayed, else number of the line's key), queued_since and eligible time (microseconds), change
--       of the fairness milli-units that wait
-- Reply { tasks in the slot, eligible time of its first delayed task or '', places of the tasks that were not as seen... }
-- Bound at most 200 tasks and as many lines.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return redis.error_reply('LOST the index is not there, or another one is')
end
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  redis.call('HSETNX', KEYS[8], ARGV[at], ARGV[at + 1])
  at = at + 2
end
local names = at
at = at + #KEYS - 8
local reply = { 0, '' }
local milli = 0
local place = 0
while at + 9 <= #ARGV do
  place = place + 1
  local id, seen, tomb = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local item, removal = ARGV[at + 3], ARGV[at + 4]
  local from, to = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local held = redis.call('HGET', KEYS[2], id) or ''
  local gone = redis.call('HGET', KEYS[3], id) or redis.call('HGET', KEYS[4], id) or ''
  if held ~= seen or gone ~= tomb then
    reply[#reply + 1] = place
  else
    if from == 1 then
      redis.call('ZREM', KEYS[5], id)
      redis.call('ZREM', KEYS[7], id)
    elseif from > 1 and from ~= to then
      redis.call('ZREM', KEYS[from], id)
    end
    if to == 1 then
      redis.call('ZADD', KEYS[5], ARGV[at + 8], id)
      redis.call('ZADD', KEYS[7], ARGV[at + 7], id)
    elseif to > 1 then
      redis.call('ZADD', KEYS[to], ARGV[at + 7], id)
    end
    if item == '' then
      redis.call('HDEL', KEYS[2], id)
    else
      redis.call('HSET', KEYS[2], id, item)
    end
    if removal == '-' then
      redis.call('HDEL', KEYS[3], id)
      redis.call('HDEL', KEYS[4], id)
    elseif removal ~= '' then
      redis.call('HSET', KEYS[3], id, removal)
      redis.call('EXPIRE', KEYS[3], ARGV[2])
    end
    milli = milli + tonumber(ARGV[at + 9])
  end
  at = at + 10
end
for i = 9, #KEYS do
  local name = ARGV[names + i - 9]
  local first = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZADD', KEYS[6], first[2], name)
  else
    redis.call('ZREM', KEYS[6], name)
  end
end
redis.call('HINCRBY', KEYS[1], 'milli', milli)
redis.call('HINCRBY', KEYS[1], 'writes', 1)
reply[1] = redis.call('HLEN', KEYS[2])
local delayed = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
reply[2] = delayed[2] or ''
return reply
