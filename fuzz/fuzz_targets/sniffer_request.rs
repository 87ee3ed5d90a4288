#![no_main]

plimsoll_fuzz::target!(plimsoll_sniffer::fuzz::TARGETS, "sniffer_request");
