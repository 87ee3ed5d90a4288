//! Who is in the cluster. A source says who joins, changes and leaves; `members` carries it out, in the table of back-ends
//! and in dispatch. The configuration is the first source; `resolve` has
//! the addresses of names, and is one when a name leads to an address at last. Sources that tell of back-ends again and again
//! are `discovered`, a directory of services, and `names`, name servers; `learned` is what they share.

pub(crate) mod configured;
pub(crate) mod discovered;
mod learned;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod resolve;
pub(crate) mod source;
