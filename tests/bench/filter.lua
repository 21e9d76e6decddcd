-- POST /filter with 100 candidates (or as many as the second argument says) over many users.
--   wrk -t2 -c32 -d10s --latency -s tests/bench/filter.lua http://127.0.0.1:8080 -- [users] [candidates] [claim]
package.path = package.path .. ";tests/bench/?.lua"
local common = require("common")

setup = common.setup
local next_request

function init(args)
    local users, n, claim = tonumber(args[1]) or 1000, tonumber(args[2]) or 100, args[3]
    math.randomseed(number)
    next_request = common.cycle(function()
        local more = claim and ',"claim":true,"limit":10' or ""
        -- A user may have 1,000 live deliveries: claims are spread over many.
        local user = claim and string.format("claims-%08d", math.random(100000)) or common.user(users)
        local body = string.format('{"user":"%s","candidates":%s%s}', user, common.list(n, 1000000), more)
        return wrk.format("POST", "/filter", common.headers, body)
    end)
end

function request() return next_request() end
