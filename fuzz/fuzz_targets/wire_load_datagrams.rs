#![no_main]

plimsoll_fuzz::target!(plimsoll_wire::fuzz::TARGETS, "wire_load_datagrams");
