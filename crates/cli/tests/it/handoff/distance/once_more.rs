//! What is tried with clients nearby, once more with clients that are far away.

use super::super::bed::Options;
use super::super::raw::Shape;
use super::super::{auto, interruptions, packets, tampering, transport, two_level};

#[test]
fn a_link_that_is_interrupted_for_two_seconds() {
    interruptions::interrupted(Options::far());
}

#[test]
fn a_reader_that_rests_before_the_end_of_its_answer() {
    interruptions::resting(Options::far(), 600_000);
}

#[test]
fn clients_that_have_ended_their_side_when_the_agent_is_killed() {
    interruptions::half_closed_at_a_kill(Options::far());
}

#[test]
fn clients_that_have_ended_their_side_when_the_back_end_is_cut_off() {
    interruptions::half_closed_at_a_cut(Options::far());
}

#[test]
fn frames_that_come_again_or_too_early_close_the_link() {
    tampering::tampered(Options::far());
}

#[test]
fn a_connection_comes_back_when_its_responses_change() {
    auto::coming_back(Options::far());
}

#[test]
fn a_connection_goes_to_the_machine_of_the_size() {
    two_level::a_far_connection_goes_to_the_machine_of_the_size();
}

#[test]
fn options_that_a_client_lacks() {
    transport::lacking_options(Options::far());
}

#[test]
fn a_window_smaller_than_a_segment() {
    transport::small_window(Options::far());
}

#[test]
fn the_same_port_again_and_again() {
    // A SYN is sent again where it was lost, or has overtaken the end of the connection before it.
    let again = transport::same_port(Options::far(), 6, 8);
    eprintln!("{again} of 48 SYNs were sent again");
}

#[test]
fn ip_options_and_extension_headers() {
    packets::served(Options::far(), Shape::Options, "forwarded");
}

#[test]
fn fragments() {
    packets::served(Options::far(), Shape::Fragments, "fragment");
}
