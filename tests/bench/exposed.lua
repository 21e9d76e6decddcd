-- POST /exposed with 10 items (or as many as the second argument says) over many users.
--   wrk -t2 -c32 -d10s --latency -s tests/bench/exposed.lua http://127.0.0.1:8080 -- [users] [items]
package.path = package.path .. ";tests/bench/?.lua"
local common = require("common")

setup = common.setup
local next_request

function init(args)
    local users, n = tonumber(args[1]) or 1000, tonumber(args[2]) or 10
    math.randomseed(number)
    next_request = common.cycle(function()
        local body = string.format('{"user":"%s","items":%s}', common.user(users), common.list(n, 1000000))
        return wrk.format("POST", "/exposed", common.headers, body)
    end)
end

function request() return next_request() end
