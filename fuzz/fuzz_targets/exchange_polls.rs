#![no_main]

plimsoll_fuzz::target!(plimsoll_exchange::fuzz::TARGETS, "exchange_polls");
