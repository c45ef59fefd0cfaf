-- Reads a page of one line of the queue index, in order, with the items.
-- KEYS  1 units, 2 line, 3 items
-- ARGV  1 epoch, 2 place of the first task, 3 most tasks to read
-- Reply { tasks in the line, id, item ('' when it is missing), id, item, ... }
-- Bound at most 512 tasks.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return redis.error_reply('LOST the index is not there, or another one is')
end
local from = tonumber(ARGV[2])
local ids = redis.call('ZRANGE', KEYS[2], from, from + math.min(tonumber(ARGV[3]), 512) - 1)
local reply = { redis.call('ZCARD', KEYS[2]) }
for _, id in ipairs(ids) do
  reply[#reply + 1] = id
  reply[#reply + 1] = redis.call('HGET', KEYS[3], id) or ''
end
return reply
