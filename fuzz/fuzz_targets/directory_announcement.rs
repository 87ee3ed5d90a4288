#![no_main]

plimsoll_fuzz::target!(plimsoll_directory::fuzz::TARGETS, "directory_announcement");
