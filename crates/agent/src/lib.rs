//! What runs beside a back-end ([`daemon`]): takes connections over from front-ends and has them answered, by the origin or by
//! a server.

pub mod daemon;
