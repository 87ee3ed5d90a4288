//! Refusals in the log: workers count them and keep examples, and the thread of control tells them, at a bounded rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::{WorkerCounts, refusals};
use crate::refusal_reason::{REASONS, RefusalReason};

/// Refusals for one reason are told in the log once in so long.
const TELL_AGAIN: Duration = Duration::from_secs(10);
/// Bytes of a request line that are shown.
const SHOWN_BYTES: usize = 120;

/// One refused request for each reason, to show in the log.
#[derive(Debug)]
pub(crate) struct RefusalExamples([Example; REASONS]);

impl Default for RefusalExamples {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Example::default()))
    }
}

#[derive(Debug, Default)]
struct Example {
    /// There is one: nobody needs to write another one.
    is_there: AtomicBool,
    text: Mutex<Option<String>>,
}

impl RefusalExamples {
    /// Keeps this request as an example, if there is none. `fault` is a back-end, and what is wrong with its answer.
    pub(crate) fn offer(
        &self,
        reason: RefusalReason,
        client: &str,
        line: Option<&[u8]>,
        fault: Option<(&str, &str)>,
    ) {
        let example = &self.0[reason as usize];
        if example.is_there.load(Ordering::Relaxed) || example.is_there.swap(true, Ordering::Relaxed) {
            return;
        }
        let line = line.map(|line| line[..line.len().min(SHOWN_BYTES)].escape_ascii());
        let mut text = line.map_or_else(|| client.to_owned(), |line| format!("{line} from {client}"));
        if let Some((backend, why)) = fault {
            text += &format!(", back-end {backend}: {why}");
        }
        *example.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn take(&self, reason: RefusalReason) -> Option<String> {
        let example = &self.0[reason as usize];
        let text = example.text.lock().unwrap_or_else(PoisonError::into_inner).take();
        example.is_there.store(false, Ordering::Relaxed);
        text
    }
}

/// What has been told of refusals.
#[derive(Debug)]
pub(crate) struct RefusalTeller {
    told: [u64; REASONS],
    at: [Option<Instant>; REASONS],
}

impl RefusalTeller {
    /// Nothing has been told.
    pub(crate) fn new() -> Self {
        Self { told: [0; REASONS], at: [None; REASONS] }
    }

    /// Refusals that are to be told now, each reason with their number; with `all`, without regard to when some were told last.
    fn due(&mut self, counts: &[WorkerCounts], now: Instant, all: bool) -> Vec<(RefusalReason, u64)> {
        let mut due = Vec::new();
        for &reason in RefusalReason::ALL {
            let (told, at) = (&mut self.told[reason as usize], &mut self.at[reason as usize]);
            let total = refusals(counts, reason);
            let early = at.is_some_and(|at| now.saturating_duration_since(at) < TELL_AGAIN);
            if total > *told && (all || !early) {
                due.push((reason, total - *told));
                (*told, *at) = (total, Some(now));
            }
        }
        due
    }

    /// Tells what is to be told.
    pub(crate) fn tell(&mut self, counts: &[WorkerCounts], examples: &RefusalExamples, all: bool) {
        for (reason, refused) in self.due(counts, Instant::now(), all) {
            let example = examples.take(reason);
            // One that is counted just now may not have left an example yet.
            let not_shown = refused - u64::from(example.is_some());
            let example = example.unwrap_or_else(|| "none kept".to_owned());
            let (why, what) = (reason.name(), reason.meaning());
            let remedy = reason.remedy();
            if reason.is_by_client() {
                tracing::info!(reason = why, refused, not_shown, example, "refused: {what}; {remedy}");
            } else {
                tracing::warn!(reason = why, refused, not_shown, example, "refused: {what}; {remedy}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_at_once_and_then_with_what_was_not_shown() {
        let counts = [WorkerCounts::default(), WorkerCounts::default()];
        let (mut teller, now) = (RefusalTeller::new(), Instant::now());
        assert_eq!(teller.due(&counts, now, true), []);
        counts[0].refusals.add(RefusalReason::QueueFull, 1);
        counts[1].refusals.add(RefusalReason::QueueFull, 2);
        assert_eq!(teller.due(&counts, now, false), [(RefusalReason::QueueFull, 3)]);
        counts[1].refusals.add(RefusalReason::QueueFull, 5);
        counts[1].refusals.add(RefusalReason::MadeRoom, 1);
        let soon = now + TELL_AGAIN - Duration::from_millis(1);
        assert_eq!(teller.due(&counts, soon, false), [(RefusalReason::MadeRoom, 1)]);
        assert_eq!(teller.due(&counts, now + TELL_AGAIN, false), [(RefusalReason::QueueFull, 5)]);
        counts[0].refusals.add(RefusalReason::QueueFull, 1);
        assert_eq!(teller.due(&counts, now + TELL_AGAIN, true), [(RefusalReason::QueueFull, 1)]);
    }

    #[test]
    fn the_first_example_is_kept_until_it_is_told() {
        let (examples, reason) = (RefusalExamples::default(), RefusalReason::QueueFull);
        examples.offer(reason, "::1", Some(b"GET /\xff HTTP/1.1"), None);
        examples.offer(reason, "::2", None, None);
        assert_eq!(examples.take(reason).as_deref(), Some("GET /\\xff HTTP/1.1 from ::1"));
        assert_eq!(examples.take(reason), None);
        examples.offer(reason, "::2", None, None);
        assert_eq!(examples.take(reason).as_deref(), Some("::2"));
        examples.offer(reason, "::2", Some(b"GET / HTTP/1.1"), Some(("b1", "a head that was cut off")));
        let with_fault = "GET / HTTP/1.1 from ::2, back-end b1: a head that was cut off";
        assert_eq!(examples.take(reason).as_deref(), Some(with_fault));
    }
}
