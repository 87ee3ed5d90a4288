//! What is told of certificates, by `check` and in the log of `balance`.

use jiff::Timestamp;
use plimsoll_config::Config;
use plimsoll_tls::Certificate;

/// A line for each certificate: its file, its names, and when it ends.
pub(crate) fn summaries(config: &Config) -> Vec<String> {
    let summary = |certificate: &Certificate| {
        let Certificate { files, names, ends, .. } = certificate;
        let names = if names.is_empty() { "no names".to_owned() } else { names.join(", ") };
        let ends = ends.strftime("%Y-%m-%d %H:%M UTC");
        format!("{}: {names}; until {ends}", files.chain.display())
    };
    config.certificates.iter().map(summary).collect()
}

/// What is no error but most likely not meant, or must be seen to soon, each with its file.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let now = Timestamp::now();
    let of = |certificate: &Certificate| {
        let file = certificate.files.chain.display().to_string();
        let all: Vec<String> = certificate.notice(now).iter().chain(&certificate.warnings).cloned().collect();
        all.into_iter().map(move |warning| format!("the certificate in {file} {warning}"))
    };
    config.certificates.iter().flat_map(of).collect()
}
