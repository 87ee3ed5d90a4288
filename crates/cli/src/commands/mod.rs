//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod balance;
mod certificates;
pub(crate) mod check;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod destination;
mod directory;
pub(crate) mod flows;
pub(crate) mod hardware;
pub(crate) mod lab;
pub(crate) mod lists;
pub(crate) mod measure;
mod open_files;
pub(crate) mod origin;
mod privileges;
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod services;
pub(crate) mod shim;
pub(crate) mod simulate;
pub(crate) mod trace;
pub(crate) mod tunnel_end;
pub(crate) mod vlan_end;
