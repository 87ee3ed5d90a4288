#![no_main]

plimsoll_fuzz::target!(plimsoll_trace::fuzz::TARGETS, "trace_file");
