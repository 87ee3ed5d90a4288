#![no_main]

plimsoll_fuzz::target!(plimsoll_decisions::fuzz::TARGETS, "decision_events");
