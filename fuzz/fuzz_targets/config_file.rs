#![no_main]

plimsoll_fuzz::target!(plimsoll_config::fuzz::TARGETS, "config_file");
