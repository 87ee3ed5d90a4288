//! Frames on a link between nodes, whichever side opened it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_wire::codec::Message;
use plimsoll_wire::session::{FrameReader, FrameWriter};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The most queued bytes; a node that does not read them loses the link.
const MOST_QUEUED_BYTES: usize = 64 << 20;
/// Looks at a link within the time for which it may be silent.
const LOOKS: u32 = 4;

/// What goes out on a link of this thread.
pub(in super::super) struct FrameSink {
    stream: Rc<TcpStream>,
    writer: RefCell<FrameWriter>,
    wake: Notify,
    lost: Cell<bool>,
}

impl FrameSink {
    pub(in super::super) fn new(stream: Rc<TcpStream>, writer: FrameWriter) -> Self {
        Self { stream, writer: RefCell::new(writer), wake: Notify::new(), lost: Cell::new(false) }
    }

    /// Whether nothing goes out any more.
    pub(in super::super) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Sends a message, at once if the socket takes it. False when it cannot be sent.
    pub(in super::super) fn push<'m, M: Message<'m>>(&self, message: &M) -> bool {
        if self.is_lost() {
            return false;
        }
        let mut writer = self.writer.borrow_mut();
        if let Err(error) = writer.push(message) {
            tracing::error!(%error, "a message could not be sent");
            return false;
        }
        if !matches!(self.write(&mut writer), Ok(false)) {
            // The link's own task goes on with it, or finds the error.
            self.wake.notify_one();
        }
        true
    }

    /// Whether bytes are left that the socket did not take.
    fn write(&self, writer: &mut FrameWriter) -> io::Result<bool> {
        loop {
            let bytes = writer.finish();
            if bytes.is_empty() {
                return Ok(false);
            }
            // Directly: the runtime would first wait for an event.
            match rustix::io::write(&*self.stream, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => writer.consume(count),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if writer.queued_bytes() > MOST_QUEUED_BYTES => {
                    return Err(io::Error::other("it does not read what it is sent"));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Why a link ended.
#[derive(Debug)]
pub(in super::super) enum FramesEnd {
    /// The other side, or what is between.
    Lost(String),
    /// What came is not authentic, or not understood.
    Broken(String),
}

impl From<io::Error> for FramesEnd {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Reads frames, and sends what is queued, until the link is lost. `take` gets the messages of each frame; `tick` is called
/// several times within `silence`.
pub(in super::super) async fn run_frames(
    sink: &FrameSink,
    reader: FrameReader,
    silence: Duration,
    tick: impl FnMut(),
    take: impl FnMut(&[u8]) -> Result<(), String>,
) -> FramesEnd {
    let end = match until_lost(sink, reader, silence, tick, take).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    sink.lost.set(true);
    end
}

async fn until_lost(
    sink: &FrameSink,
    mut reader: FrameReader,
    silence: Duration,
    mut tick: impl FnMut(),
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<std::convert::Infallible, FramesEnd> {
    let mut ticker = interval(silence / LOOKS);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard_at = Instant::now();
    loop {
        while let Some(area) = reader.next_frame().map_err(|error| FramesEnd::Broken(error.to_string()))? {
            take(area).map_err(FramesEnd::Broken)?;
        }
        let left = sink.write(&mut sink.writer.borrow_mut())?;
        tokio::select! {
            biased;
            ready = sink.stream.readable() => {
                ready?;
                match sink.stream.try_read(reader.space()) {
                    Ok(0) => return Err(FramesEnd::Lost("it was closed".to_owned())),
                    Ok(count) => reader.filled(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error.into()),
                }
                heard_at = Instant::now();
            }
            () = sink.wake.notified() => {}
            _ = sink.stream.writable(), if left => {}
            _ = ticker.tick() => {
                if heard_at.elapsed() > silence {
                    return Err(FramesEnd::Lost(format!("nothing was heard for {silence:?}")));
                }
                tick();
            }
        }
    }
}
