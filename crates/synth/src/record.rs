//! A counted request, whether a generator made it or a reader of traces found it.

/// What kind of work a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordKind {
    /// A stored document: its cost follows from its size.
    #[default]
    Static,
    /// Computed on demand: never cached, its cost is a service time.
    Dynamic,
}

/// What the answer to a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerKind {
    /// The document, or a part of it.
    #[default]
    Document,
    /// 304: the client has it already.
    NotModified,
    /// An error of the client: it asked for what is not there.
    Invalid,
}

/// One counted request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// Time of the request in nanoseconds since the trace's own origin (Unix epoch for logs).
    pub time_ns: u64,
    /// Bytes of the response body that were sent; 0 for HEAD, 304 and a logged `-`.
    pub size_bytes: u64,
    /// Service time in nanoseconds where the trace gives one, else 0.
    pub service_ns: u64,
    /// Dense number of the target, in order of first appearance where a reader numbers them.
    pub target: u32,
    /// Dense number of the client, in order of first appearance; 0 where the format names none.
    pub client: u32,
    /// Class of content (World Cup type, CSV column `class`), else 0.
    pub class: u16,
    /// Static or dynamic.
    pub kind: RecordKind,
    /// What is answered.
    pub answer: AnswerKind,
    /// Asked by HTTP/1.1, whose connections stay.
    pub http11: bool,
}

/// Which optional fields of records hold more than defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordFields {
    /// Some are dynamic.
    pub kind: bool,
    /// Some have a class.
    pub class: bool,
    /// Some have a service time.
    pub service: bool,
    /// Some have a client.
    pub client: bool,
}

impl RecordFields {
    /// Those that this record fills, too.
    pub fn add(&mut self, record: &Record) {
        self.kind |= record.kind == RecordKind::Dynamic;
        self.class |= record.class != 0;
        self.service |= record.service_ns != 0;
        self.client |= record.client != 0;
    }
}
