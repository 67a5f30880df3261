// Redis runs a Lua script without other commands in between, and makes its writes durable together.

const EXPECT = `
local plan = cjson.decode(ARGV[1])
for _, one in ipairs(plan.expected) do
  if (redis.call('GET', one.key) or nil) ~= one.text then return 'conflict' end
end`;

/** ARGV[1] is a `KeyValueCommit` with the channels of its notifications. */
export const COMMIT = `${EXPECT}
local time = redis.call('TIME')
if plan.before and plan.before <= time[1] * 1000 + math.floor(time[2] / 1000) then return 'late' end
for _, one in ipairs(plan.put or {}) do redis.call('SET', one.key, one.text) end
for _, key in ipairs(plan.remove or {}) do redis.call('DEL', key) end
for _, one in ipairs(plan.removeEntries or {}) do redis.call('ZREM', one.set, one.entry) end
for _, one in ipairs(plan.addEntries or {}) do redis.call('ZADD', one.set, 0, one.entry) end
for _, one in ipairs(plan.messages) do redis.call('PUBLISH', one.channel, one.key) end
return 'committed'`;

/** Values are bytes, which JSON cannot contain: ARGV[1] has their positions in ARGV, and null for a missing one. */
export const WRITE_ROWS = `${EXPECT}
local outcomes = {}
for n, row in ipairs(plan.rows) do
  local key, outcome = KEYS[n], 'written'
  for field, at in pairs(row.read) do
    if redis.call('HGET', key, field) ~= (ARGV[at] or false) then outcome = 'changed' end
  end
  if redis.call('EXISTS', key) == 0 then outcome = 'missing'
  elseif outcome == 'written' and row.remove then redis.call('UNLINK', key)
  elseif outcome == 'written' and row.moveTo then
    if redis.call('RENAMENX', key, row.moveTo) == 0 then outcome = 'taken' end
  elseif outcome == 'written' then
    for field, at in pairs(row.set) do if ARGV[at] then redis.call('HSET', key, field, ARGV[at]) end end
    for field, at in pairs(row.set) do if not ARGV[at] then redis.call('HDEL', key, field) end end
  end
  outcomes[n] = outcome
end
return outcomes`;
