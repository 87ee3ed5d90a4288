//! What is told of clients from proxy to proxy, and whom of them it is believed.

use std::net::IpAddr;

use crate::address::{IpNet, block};
use crate::declare::{KeyForm, KeyValue, keys, words};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{self, Choice, Flag, Text, Texts};
use crate::reader::{ConfigReader, DeclaredTable, ListForm, optional, quoted};
use crate::value::ConfigValue;

keys! {
    /// Whose `X-Forwarded-*` fields are believed, and what back-ends are told besides.
    ["forwarded"] #[derive(Default)] pub struct Forwarded {
        /// Proxies in front of this one: their fields are added to, those of others replaced. At most 1000.
        "trusted" trusted: Vec<IpNet> = Is("[]"), Texts("an IP address or block, e.g. \"10.0.0.0/8\" or \"::1\"");
        /// The field `Forwarded` (RFC 7239), which says what `X-Forwarded-*` say: `off`, the front-end writes none, and passes on that of
        /// trusted proxies; `append`, its element stands behind those of trusted proxies; `replace`, it stands alone.
        "field" field: ForwardedField = Is("off"), Choice(ForwardedField::WORDS);
        /// What `by` says in its element: who the front-end is.
        "by" by: Option<String> = Words("no `by`"), Text("an IP address, or a name that begins with `_`") => ByWhom;
        /// Whether requests say by `Via` (RFC 9110, section 7.6.3) that they came by this front-end. To such requests nginx answers without
        /// compression, unless `gzip_proxied` is set there.
        "via" via: bool = Is("false"), Flag;
    }
}

words! {
    /// What becomes of the field `Forwarded`.
    pub enum ForwardedField {
        Off = "off" / "The front-end writes none.",
        Append = "append" / "Its element stands behind those of trusted proxies.",
        Replace = "replace" / "Its element stands alone.",
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the macro derives the same for all choices, which few need a default of"
)]
impl Default for ForwardedField {
    fn default() -> Self {
        Self::Off
    }
}

/// A node of RFC 7239, section 6, as it stands in the field.
struct ByWhom;

impl KeyForm<Option<String>> for ByWhom {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        key: &str,
    ) -> Option<Option<String>> {
        optional(reader, section, key, |text| {
            let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let is_name =
                text.len() > 1 && text.len() <= 64 && text.starts_with('_') && text.chars().all(good);
            if is_name || text.parse::<IpAddr>().is_ok() {
                return Ok(text.to_owned());
            }
            let what = format!("{} is neither an IP address nor such a name", quoted(text));
            Err((what, "write e.g. \"10.0.0.1\" or \"_front-end-1\"".to_owned()))
        })
    }

    fn show(by: &Option<String>) -> Option<ConfigValue> {
        by.clone().map(ConfigValue::Text)
    }
}

const TRUSTED: ListForm = ListForm {
    most: 1000,
    fewer: "join neighbouring blocks",
    remedy: "write e.g. \"10.0.0.0/8\" or \"::1\"",
};

impl KeyValue for Vec<IpNet> {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        Some(reader.list(section, name, TRUSTED, block))
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::List(self.iter().map(ToString::to_string).collect()))
    }
}
