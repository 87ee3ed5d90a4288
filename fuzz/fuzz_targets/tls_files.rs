#![no_main]

plimsoll_fuzz::target!(plimsoll_tls::fuzz::TARGETS, "tls_files");
