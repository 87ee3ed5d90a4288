#![no_main]

plimsoll_fuzz::target!(plimsoll_observe::fuzz::TARGETS, "access_log_line");
