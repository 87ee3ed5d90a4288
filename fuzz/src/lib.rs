//! Makes a program of one fuzz target.

#[doc(hidden)]
pub use libfuzzer_sys;

/// The program that gives inputs to the target of this name in this list.
#[macro_export]
macro_rules! target {
    ($targets:expr, $name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            let (_, run) = $targets.iter().find(|(name, _)| *name == $name).expect("there is such a target");
            run(bytes);
        });
    };
}
