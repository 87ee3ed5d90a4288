#![no_main]

plimsoll_fuzz::target!(plimsoll_datapath::fuzz::TARGETS, "tap_packet");
