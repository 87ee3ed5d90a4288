//! The live system as processes: back-ends that are killed or hang, reloads, overload, real peers. All traffic is on
//! loopback, and bounded in time and count.

mod adaptload;
mod announced_loads;
mod blocked;
mod classes;
mod client_processes;
mod discovery;
mod faults;
mod least;
mod load_in_responses;
mod load_information;
mod messages;
mod names;
mod overload;
mod partitions;
mod peers;
mod posts;
mod privileges;
mod processes;
mod reload;
mod services;
mod stop;
mod tls;
mod two_level;
mod watch;
