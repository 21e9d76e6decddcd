-- Shared by the wrk scripts. Requests are made once, in init, so that the load costs little more than sending it.
--   wrk -s filter.lua URL -- [users] [candidates or items] [claim]

local M = {}

-- Requests prepared by each thread; each is another user, so this many users take part per thread.
M.PREPARED = 4000

M.headers = { ["Content-Type"] = "application/json" }

-- An item as a backend would have it: 24 bytes, from a catalogue of a million.
function M.item(n)
    return string.format('"item-%019d"', n)
end

-- Users are chosen by a power law (a few are asked for often), as wrk's threads each do with their own seed.
function M.user(users)
    local u = math.floor(users ^ math.random())
    return string.format("user-%08d", u)
end

-- The n-th of `count` prepared requests is served in turn.
function M.cycle(make)
    local requests, at = {}, 0
    for i = 1, M.PREPARED do requests[i] = make() end
    return function()
        at = at % #requests + 1
        return requests[at]
    end
end

local threads = 0

-- Each thread gets a number to seed its generator with.
function M.setup(thread)
    threads = threads + 1
    thread:set("number", threads)
end

function M.list(count, catalogue)
    local list = {}
    for i = 1, count do list[i] = M.item(math.random(catalogue)) end
    return "[" .. table.concat(list, ",") .. "]"
end

return M
