//! Reads any inputs as one stream of records.

use std::collections::VecDeque;

use crate::choose::{check_fields, choose, continued, merge, stamp_assumption};
use crate::decoder::FormatDecoder;
use crate::error::TraceError;
use crate::explain::{explain, left_out_sites};
use crate::format::Format;
use crate::format_spec::Decode;
use crate::ingest::Ingest;
use crate::input::TraceInput;
use crate::options::ReadOptions;
use crate::prefix::{BYTE_ORDER_MARK, Prefix, is_marked_text};
use crate::registry::PREFIX_BYTES;
use crate::source::{InputDigest, InputSource};
use crate::tally::ReadReport;
use crate::targets::TargetTable;
use plimsoll_synth::Record;

/// Reads inputs one after the other and yields their counted requests in order of time.
///
/// Memory holds the distinct targets and clients, the records that wait to be sorted and buffers of
/// fixed size. Stamps are those of the input; [`crate::Trace::open`] spreads whole seconds. An
/// error ends the stream; the last item is an error when too many lines were unusable.
pub struct TraceReader {
    inputs: VecDeque<TraceInput>,
    options: ReadOptions,
    digest: InputDigest,
    current: Option<Box<dyn FormatDecoder>>,
    ingest: Ingest,
    /// Whether the digest covers the inputs to their end.
    digest_whole: bool,
    /// Whether reading has ended.
    done: bool,
    /// Whether the final check, or an error, was already returned.
    judged: bool,
}

impl TraceReader {
    /// A reader of `inputs`, in that order; nothing is opened before the first record is asked for.
    pub fn new(inputs: &[TraceInput], options: &ReadOptions) -> Self {
        Self {
            inputs: inputs.iter().cloned().collect(),
            options: options.clone(),
            digest: InputDigest::default(),
            current: None,
            ingest: Ingest::new(options),
            digest_whole: true,
            done: false,
            judged: false,
        }
    }

    /// What was read so far; complete once the stream has ended.
    pub fn report(&self) -> &ReadReport {
        &self.ingest.tally.report
    }

    /// The targets seen so far.
    pub fn targets(&self) -> &TargetTable {
        &self.ingest.targets
    }

    /// Whether every record so far was stamped with a whole second.
    pub fn whole_seconds(&self) -> bool {
        self.ingest.whole_seconds()
    }

    /// The targets and the report, when the stream has ended.
    pub fn into_parts(self) -> (TargetTable, ReadReport) {
        (self.ingest.targets, self.ingest.tally.report)
    }

    /// Reads on until a record is ready or everything is read.
    fn advance(&mut self) -> Result<(), TraceError> {
        while !self.ingest.has_ready() && !self.done {
            if self.ingest.is_full() {
                self.finish_current()?;
                self.skip_rest()?;
                self.finish()?;
            } else if let Some(decoder) = &mut self.current {
                let more = decoder.step(&mut self.ingest)?;
                self.ingest.tally.judge_early()?;
                if !more {
                    self.finish_current()?;
                }
            } else if let Some(input) = self.inputs.pop_front() {
                self.current = self.open(&input)?;
            } else {
                self.finish()?;
            }
        }
        Ok(())
    }

    fn open(&mut self, input: &TraceInput) -> Result<Option<Box<dyn FormatDecoder>>, TraceError> {
        let mut source = InputSource::open(input, &self.digest)?;
        self.ingest.tally.start(source.path());
        let path = source.path().to_owned();
        if is_marked_text(source.peek(PREFIX_BYTES)?) {
            source.consume(BYTE_ORDER_MARK.len());
        }
        let first = source.peek(PREFIX_BYTES)?;
        if first.len() < PREFIX_BYTES && first.iter().all(u8::is_ascii_whitespace) {
            source.drain()?;
            return Ok(None);
        }
        let prefix = Prefix::new(first, input.path());
        let before = self.ingest.tally.report.format;
        let format = choose(&self.options, &prefix, &path)
            .or_else(|error| continued(before, &prefix, &self.options).ok_or(error))?;
        let report = &mut self.ingest.tally.report;
        if report.format.is_none() {
            report.unseen_fields = check_fields(format, &self.options, &prefix, &path)?;
        }
        report.format = Some(merge(report.format, format, &path)?);
        if report.first_line.is_none() {
            report.first_line = explain(format, &prefix, &path, &self.options);
            report.left_out_sites = left_out_sites(format, &prefix, &self.options);
        }
        if self.options.format.is_some() && report.resembles.is_none() {
            report.resembles =
                Format::detect_prefix(&prefix).filter(|found| format.merged_with(*found).is_none());
        }
        if self.options.format.is_some() {
            self.ingest.tally.looks_like = Format::detect_prefix(&prefix).filter(|found| *found != format);
        }
        match &format.spec().decode {
            Decode::Own { open, .. } => open(source, input).map(Some),
            Decode::Lines(log) => Ok(Some(log.open(source, &self.options))),
        }
    }

    /// Reads the rest of the current input for the digest. Standard input may never end, so it is not read on
    /// after the limit on records.
    fn finish_current(&mut self) -> Result<(), TraceError> {
        let Some(mut decoder) = self.current.take() else {
            return Ok(());
        };
        match decoder.source() {
            Some(source) if source.path() == "-" && self.ingest.is_full() => {
                self.digest_whole = false;
            }
            Some(source) => source.drain()?,
            None => {}
        }
        Ok(())
    }

    /// Hashes the inputs that are unread because of the limit on records.
    fn skip_rest(&mut self) -> Result<(), TraceError> {
        for input in std::mem::take(&mut self.inputs) {
            if input == TraceInput::Stdin {
                self.digest_whole = false;
            } else {
                InputSource::open(&input, &self.digest)?.drain()?;
            }
            self.ingest.tally.start(&input.to_string());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        self.done = true;
        self.ingest.finish();
        let whole_seconds = self.ingest.whole_seconds();
        let report = &mut self.ingest.tally.report;
        report.sha256 = self.digest_whole.then(|| self.digest.hex());
        report.times_spread = whole_seconds && report.records > 0;
        report.stamp_assumption = stamp_assumption(report, &self.options).to_owned();
        Ok(())
    }
}

impl Iterator for TraceReader {
    type Item = Result<Record, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.ingest.pop() {
            return Some(Ok(record));
        }
        if let Err(error) = self.advance() {
            self.done = true;
            self.judged = true;
            self.current = None;
            return Some(Err(match error {
                TraceError::Header { path, reason } => {
                    TraceError::Header { path, reason: reason + &self.ingest.tally.alike() }
                }
                error => error,
            }));
        }
        if let Some(record) = self.ingest.pop() {
            return Some(Ok(record));
        }
        if std::mem::replace(&mut self.judged, true) {
            return None;
        }
        self.ingest.tally.judge().err().map(Err)
    }
}
