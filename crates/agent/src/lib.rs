//! What runs beside a back-end. Today: the [`origin`], a file server with a memory cache and an emulated disk.

pub mod origin;
