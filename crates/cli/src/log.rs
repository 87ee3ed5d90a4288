//! The messages of the commands that serve: on standard error, in one of three forms.

use std::fmt;
use std::io::IsTerminal as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct LogArgs {
    /// Form of messages on standard error: `auto` is `short` on a terminal and `full`, with time and level, elsewhere; `json`
    /// is one object a line. What is written: PLIMSOLL_LOG, a level such as `warn`
    #[arg(long, value_name = "FORM", default_value = "auto")]
    log_format: LogForm,
}

/// The form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogForm {
    Auto,
    Short,
    Full,
    Json,
}

impl LogArgs {
    /// Writes messages to standard error from now on: what `PLIMSOLL_LOG` asks for, in levels or as `target=level,…`, or `info`.
    /// A value that cannot be read counts as none.
    pub(crate) fn start(self) {
        let asked = std::env::var("PLIMSOLL_LOG").ok().and_then(|given| wanted(&given));
        let info = || Targets::new().with_default(tracing_subscriber::filter::LevelFilter::INFO);
        let registry = tracing_subscriber::registry().with(asked.unwrap_or_else(info));
        let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let short = match self.log_format {
            LogForm::Auto => std::io::stderr().is_terminal(),
            LogForm::Short => true,
            LogForm::Full => false,
            LogForm::Json => return registry.with(layer.json().flatten_event(true)).init(),
        };
        registry.with(layer.event_format(MessageForm { short }).fmt_fields(fields())).init();
    }
}

/// Says why the command ends: as its other messages, or plainly where there are none.
pub(crate) fn error(error: &impl fmt::Display) {
    if tracing::enabled!(Level::ERROR) {
        tracing::error!("{error}");
    } else {
        eprintln!("plimsoll: {error}");
    }
}

fn wanted(given: &str) -> Option<Targets> {
    let given = given.trim();
    if given.is_empty() { None } else { given.parse().ok() }
}

/// Writes the message and then `key=value`, with quotes around what would not be one word.
fn fields() -> impl for<'w> FormatFields<'w> + 'static {
    debug_fn(|writer: &mut Writer<'_>, field, value| {
        if field.name() == "message" {
            return write!(writer, "{value:?}");
        }
        let text = format!("{value:?}");
        let is_word =
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'='));
        let is_quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
        match is_word || is_quoted {
            true => write!(writer, "{}={text}", field.name()),
            false => write!(writer, "{}={text:?}", field.name()),
        }
    })
    .delimited(" ")
}

/// Messages for people: each line of a message is a line in this form.
struct MessageForm {
    short: bool,
}

impl MessageForm {
    /// Writes what stands before each line.
    fn begin(&self, writer: &mut Writer<'_>, level: Level, target: &str) -> fmt::Result {
        if self.short {
            writer.write_str("plimsoll: ")?;
            match level {
                Level::ERROR => writer.write_str("error: ")?,
                Level::WARN => writer.write_str("warning: ")?,
                Level::INFO => {}
                _ => writer.write_str("debug: ")?,
            }
        } else {
            SystemTime.format_time(writer)?;
            write!(writer, " {level:>5} ")?;
        }
        // Where it comes from matters to who looks for a fault in the program.
        if level > Level::INFO { write!(writer, "{target}: ") } else { Ok(()) }
    }
}

impl<S, N> FormatEvent<S, N> for MessageForm
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        for line in text.lines() {
            self.begin(&mut writer, level, target)?;
            writeln!(writer, "{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn levels_and_targets() {
        assert_eq!(wanted("debug"), Some(Targets::new().with_default(LevelFilter::DEBUG)));
        let both = Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("plimsoll_balancer", LevelFilter::TRACE);
        assert_eq!(wanted("warn,plimsoll_balancer=trace"), Some(both));
        assert_eq!(wanted(" "), None);
        assert_eq!(wanted("plimsoll_balancer=loud"), None);
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written in this form.
    fn written(short: bool) -> String {
        let (written, all) = (Written::default(), LevelFilter::TRACE);
        let to = written.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || to.clone());
        let registry = tracing_subscriber::registry()
            .with(all)
            .with(layer.event_format(MessageForm { short }).fmt_fields(fields()));
        tracing::subscriber::with_default(registry, || {
            tracing::info!("read again\n  a: b");
            tracing::warn!(backend = "b0", "back-end is down");
            tracing::error!(why = %"it \"is\" so", at = %"[::1]:80", n = 3, "cannot go on");
            tracing::debug!(target: "part", "looked");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn short_lines_say_who_and_how_bad() {
        let expected = "plimsoll: read again\nplimsoll:   a: b\nplimsoll: warning: back-end is down backend=\"b0\"\n\
                        plimsoll: error: cannot go on why=\"it \\\"is\\\" so\" at=[::1]:80 n=3\nplimsoll: debug: part: looked\n";
        assert_eq!(written(true), expected);
    }

    #[test]
    fn full_lines_have_time_and_level() {
        let text = written(false);
        let lines = text.lines().map(|line| {
            let (time, rest) = line.split_once(' ').unwrap();
            assert!(time.parse::<jiff::Timestamp>().is_ok() && time.ends_with('Z'), "{line}");
            rest
        });
        let expected = [
            " INFO read again",
            " INFO   a: b",
            " WARN back-end is down backend=\"b0\"",
            "ERROR cannot go on why=\"it \\\"is\\\" so\" at=[::1]:80 n=3",
            "DEBUG part: looked",
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }
}
