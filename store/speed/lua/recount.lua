-- Sets the sum of what waits in one slot after it was counted anew, if nothing was written meanwhile.
-- KEYS  1 units
-- ARGV  1 epoch, 2 writes as they were when the count began, 3 sum in fairness milli-units
-- Reply 1 when it was set and differed, 0 otherwise
-- Bound three commands.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return redis.error_reply('LOST the index is not there, or another one is')
end
local now = redis.call('HMGET', KEYS[1], 'writes', 'milli')
if (now[1] or '0') ~= ARGV[2] or (now[2] or '0') == ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'milli', ARGV[3])
return 1
