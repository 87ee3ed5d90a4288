//! Content classes: which class a request belongs to, and what requests of each class cost.
//!
//! A [`ClassTable`] is read from a text or made by a program. [`ClassTable::class_of`] finds the class of a request by its path,
//! its application (the last segment of the path) and its parameters, as the class table of content sniffer based load distribution does (Hyun et
//! al., IEICE 2003, section 3.1 and figure 3).
//!
//! The crate does no input or output and reads no clock.

mod bounds;
mod builder;
mod classifier;
mod content_class;
mod file_error;
#[doc(hidden)]
pub mod fuzz;
pub mod learn;
mod parameters;
mod path_pattern;
mod pattern;
mod read;
mod shadow;
mod table;
mod tree;
mod uri;
mod write;

pub use bounds::{CLASSES_MOST, FILE_BYTES_MOST, PARAMETERS_MOST, PATTERNS_MOST, SEGMENTS_MOST};
pub use content_class::{ContentClass, MergedClass};
pub use file_error::{ClassFileError, ClassFileErrors};
pub use path_pattern::{PathPattern, PathSegment};
pub use pattern::{ApplicationPattern, ClassPattern};
pub use read::ReadClassTable;
pub use table::{ClassTable, ClassTableError};
