#![no_main]

plimsoll_fuzz::target!(plimsoll_balancer::fuzz::TARGETS, "proxy_header");
