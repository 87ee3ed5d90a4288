//! What a field of a log may say.

/// The unit in which a log counts a time span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanUnit {
    S,
    /// Seconds with decimals. A whole number has another unit, which the log does not tell.
    DecimalS,
    Ms,
    Us,
    Ns,
}

/// What a field of a log says of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldRole {
    /// When the request arrived.
    Time,
    /// When the answer ended, in place of [`FieldRole::Time`].
    End,
    /// The date, where the time is only that of the day.
    Date,
    Client,
    Method,
    /// The site; it becomes the first part of the target.
    Host,
    /// The site, which is no part of the target; only noticed.
    Site,
    /// Path, path and query, or URL.
    Target,
    /// A URL whose site matters.
    Url,
    /// The query, where the target has none.
    Query,
    /// The path that the server made of the target, where the log has nothing better.
    ServedPath,
    /// The query of [`FieldRole::ServedPath`].
    ServedQuery,
    /// The request line: method, target, protocol.
    Request,
    Status,
    /// Bytes sent.
    Size,
    /// How long the back-end worked.
    Service(SpanUnit),
    /// How long the request took as a whole.
    Total(SpanUnit),
    /// The back-end that answered.
    Backend,
}
