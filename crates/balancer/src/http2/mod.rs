//! HTTP/2, of clients and to back-ends, on the `h2` crate.
//!
//! A stream of HTTP/2 appears to the rest of the front-end as a connection with one exchange of HTTP/1.1 on it: what comes is
//! written out as HTTP/1.1 writes it, and what goes is read from that. So everything that decides about requests, and every check
//! of what is passed on, is one code for both versions, and nothing can be smuggled by a conversion: its result is checked like
//! bytes from a stranger.
//!
//! `text` converts heads, `incoming` and `outgoing` bodies, and `stream` joins both to a connection: `client_stream` and
//! `backend_stream` are its two ends. `serving` drives the connection
//! of a client, on whose frames `meter` keeps an eye, and `stream_tasks` has the tasks of its streams; `connections` keeps those to back-ends.

mod backend_stream;
mod client_stream;
mod connections;
pub(crate) mod fuzzed;
mod held_output;
mod incoming;
mod meter;
mod outgoing;
mod piece;
mod resets;
mod serving;
mod stream;
mod stream_tasks;
mod text;

pub(crate) use backend_stream::{AsksBackend, BackendStreamText};
pub(crate) use client_stream::ClientStreamText;
pub(crate) use connections::{Http2Connections, UNACKNOWLEDGED};
pub(crate) use incoming::{NOT_PROCESSED, UNSAYABLE, is_reset_for_request};
pub(crate) use serving::{OpenStream, PREFACE_LINE, serve};
pub(crate) use stream::StreamText;
pub(crate) use stream_tasks::StreamTasks;
