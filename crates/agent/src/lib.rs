//! What runs beside a back-end: the agent ([`daemon`]), which takes connections over from front-ends and has them answered,
//! and the [`origin`], a file server with a memory cache and an emulated disk.

pub mod daemon;
pub mod origin;
