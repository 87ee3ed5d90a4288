//! The log of the commands that serve.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes the log to standard error: what `PLIMSOLL_LOG` asks for, in levels or as `target=level,…`, or `info`. A value that
/// cannot be read counts as none.
pub(crate) fn to_stderr() {
    let asked = std::env::var("PLIMSOLL_LOG").ok().and_then(|given| wanted(&given));
    tracing_subscriber::registry()
        .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr))
        .with(
            asked.unwrap_or_else(|| {
                Targets::new().with_default(tracing_subscriber::filter::LevelFilter::INFO)
            }),
        )
        .init();
}

fn wanted(given: &str) -> Option<Targets> {
    let given = given.trim();
    if given.is_empty() { None } else { given.parse().ok() }
}

#[cfg(test)]
mod tests {
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
}
