#![no_main]

plimsoll_fuzz::target!(plimsoll_agent::fuzz::TARGETS, "agent_scoreboard");
