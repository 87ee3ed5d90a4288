//! What runs beside a back-end. [`daemon`] takes connections over from front-ends and has them answered, by the origin or by
//! a server. [`load`] tells front-ends what the back-end has to do.

pub mod daemon;
#[doc(hidden)]
pub mod fuzz;
pub mod load;
