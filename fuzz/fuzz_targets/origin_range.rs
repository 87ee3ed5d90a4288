#![no_main]

plimsoll_fuzz::target!(plimsoll_origin::fuzz::TARGETS, "origin_range");
