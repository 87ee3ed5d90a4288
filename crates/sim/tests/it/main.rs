//! Integration tests of the simulator.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod adaptload_model;
mod adaptload_theory;
mod apache_front_ends;
mod apache_measuring;
mod apache_model;
mod apache_run;
mod apache_theory;
mod common;
mod engine;
mod fifo_theory;
mod lard_model;
mod load_information;
mod load_information_faults;
mod polling_theory;
mod probes;
mod spread;
mod theory;
