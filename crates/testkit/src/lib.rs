//! What the tests of several crates share: waiting for events instead of for time. Only tests depend on this crate.
//!
//! A test must hold on a machine that is busy with other things. So it never sleeps for a time in which something will
//! probably have happened: it waits until it has, with the functions here. Where a scenario itself takes time, it says so by
//! [`pace`]. `cargo xtask tidy` refuses any other sleep in a test, and any upper bound on time but [`PATIENCE`].

mod corpus;
mod cpu;
mod etcd;
mod issued;
mod kernel_counter;
mod loopback;
mod names;
mod pace;
mod process;
mod synthetic_log;
mod wait;

pub use corpus::{FuzzTarget, replay_corpus};
pub use cpu::cpu_time_of;
pub use etcd::EtcdServer;
pub use issued::{IssuedFiles, TestAuthority};
pub use kernel_counter::kernel_counter;
pub use loopback::OwnLoopback;
pub use names::unique_name;
pub use pace::{Why, pace, pace_async, stays};
pub use process::{ProcessWatch, is_stopped};
pub use synthetic_log::{
    DemandSpread, SyntheticLog, SyntheticRequest, TRUE_COSTS_S, TrueDiscipline, rand_index,
};
pub use wait::{PATIENCE, eventually, eventually_async, uninterrupted, wait_for};
