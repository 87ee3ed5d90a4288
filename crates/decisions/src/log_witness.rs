//! The witness that writes a decision log.

use std::io;
use std::sync::Arc;

use plimsoll_policy::{Time, Witness};

use crate::event::RunHeader;
use crate::log_config::LogConfig;
use crate::recorder::Recorder;
use crate::writer::LogWriter;

/// Records every input of a core, and hands full chunks over to a writer, without waiting for the disk.
pub struct LogWitness {
    recorder: Recorder,
    writer: Arc<LogWriter>,
}

impl LogWitness {
    /// Opens a log. This waits for the disk.
    ///
    /// # Errors
    /// Those of [`LogWriter::open`].
    pub fn open(config: &LogConfig) -> io::Result<Self> {
        Ok(Self { recorder: Recorder::new(), writer: Arc::new(LogWriter::open(config)?) })
    }

    /// A fresh policy begins.
    pub fn run_started(&mut self, header: &RunHeader, now: Time) {
        self.recorder.run_started(header, now);
    }

    /// Passes what was recorded to the writer.
    pub fn hand_over(&mut self) {
        if let Some(emptied) = self.writer.push(self.recorder.take()) {
            self.recorder.recycle(emptied);
        }
    }

    /// The writer, so that it can be waited for where no lock is held.
    #[must_use]
    pub fn writer(&self) -> &Arc<LogWriter> {
        &self.writer
    }
}

macro_rules! recorded {
    ($($(#[$inline:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        /// Records each input.
        impl Witness for LogWitness {
            $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
                self.recorder.$name($($arg),*);
                if self.recorder.is_chunk_full() {
                    self.hand_over();
                }
            })*
        }
    };
}

plimsoll_policy::each_witness_method!(recorded);
