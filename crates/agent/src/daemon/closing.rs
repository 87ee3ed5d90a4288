//! Who may have a connection closed once the request under way is answered.

/// See the module's documentation.
pub(super) trait Closing {
    /// Whether no further request is to be awaited.
    fn is_closing(&self) -> bool;

    /// Waits until that may have changed.
    fn woken(&self) -> impl Future<Output = ()>;
}
