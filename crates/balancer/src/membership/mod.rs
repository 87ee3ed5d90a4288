//! Who is in the cluster. A source says who joins, changes and leaves; `members` carries it out, in the table of back-ends
//! and in dispatch. The configuration is the first source.

pub(crate) mod configured;
pub(crate) mod members;
pub(crate) mod source;
