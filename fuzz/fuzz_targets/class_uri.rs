#![no_main]

plimsoll_fuzz::target!(plimsoll_classes::fuzz::TARGETS, "class_uri");
