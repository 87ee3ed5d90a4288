-- For wrk: two documents by turns, or always the same one on a connection. Arguments: MODE PATH PATH

local threads = 0

function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end

function init(args)
  mode = args[1]
  local headers = mode == "new" and { ["Connection"] = "close" } or nil
  requests = { wrk.format("GET", args[2], headers), wrk.format("GET", args[3], headers) }
  turn = id
end

function request()
  if mode ~= "stay" then
    turn = turn + 1
  end
  return requests[turn % 2 + 1]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("\nresult %d %d %d %d %d\n", summary.requests, summary.bytes, summary.duration,
    e.connect + e.read + e.write + e.timeout, e.status))
end
