//! The reference of all keys for the documentation, from their declarations.

use crate::config::Config;
use crate::keys::{Default, KeySpec};
use crate::sections::SECTIONS;

impl Config {
    /// Every table and key of the file with default, what is accepted and meaning, as Markdown.
    #[must_use]
    pub fn reference() -> String {
        let mut out = String::new();
        for section in SECTIONS {
            let header = section.header();
            match section.name {
                "" => out += &format!("### At {header}\n\n"),
                _ => out += &format!("### `{header}`\n\n"),
            }
            out += &format!("{}\n\n", section.help());
            out += "| Key | Default | Accepts | Meaning |\n| --- | --- | --- | --- |\n";
            for key in section.keys() {
                out += &row(key);
            }
            out.push('\n');
        }
        out.truncate(out.trim_end().len());
        out
    }
}

fn row(key: &KeySpec) -> String {
    let default = match key.default {
        Default::Required => "required".to_owned(),
        Default::Is(text) => format!("`{}`", key.kind.literal(text)),
        Default::Words(words) => words.to_owned(),
    };
    let restart = if key.restart { " A change needs a restart." } else { "" };
    let cell = |text: &str| text.replace('|', "\\|");
    let accepts = cell(&key.kind.accepts());
    format!("| `{}` | {default} | {accepts} | {}{restart} |\n", key.name, cell(key.help()))
}
