//! Sticky sessions by a cookie.

use std::time::Duration;

use plimsoll_policy::params::ParamSet;

use super::PolicyConfig;
use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{self, Choice, Flag, Text};
use crate::reader::{ConfigReader, DeclaredTable, quoted};
use crate::value::{self, ConfigValue, is_token_char, show_duration};

keys! {
    /// Sessions that stay with their back-end, by a cookie that the front-end sets; without this table there are none. The policy places new
    /// sessions, and those whose back-end is gone or full. Cannot be with other mechanisms than `proxy`. See
    /// [sticky sessions](routing.md#sticky-sessions).
    ["sticky"] pub struct StickyConfig {
        /// The name of the cookie. Two pools cannot have the same one; a pool that has this table of the whole file adds `-` and its name.
        "cookie" cookie: String = Words("`plimsoll`; in `[pool.sticky]` with `-` and the pool's name"), Text("a name of letters, digits, `-`, `_` and `.`") => CookieName;
        /// A secret that is the key of the hash of a back-end's name: what front-ends with the same one set is the same. Without it, whoever
        /// guesses a back-end's name, by default its address, can tell that the guess is right.
        "salt" salt: String = Words("none"), Text("a text of 1 to 256 characters") => Salt;
        /// How long clients keep the cookie: `session`, until they end; or a time.
        "max_age" max_age: Option<Duration> =
            Is("session"), Text("\"session\", or a time from \"1s\" to \"24h\", e.g. \"8h\"") => MaxAge;
        /// Whether it is sent back under TLS alone: `auto`, where it was set under TLS.
        "secure" secure: CookieSecure = Is("auto"), Choice(CookieSecure::WORDS);
        /// Whether scripts in the browser cannot read it.
        "http_only" http_only: bool = Is("true"), Flag;
        /// Whether requests from other sites carry it.
        "same_site" same_site: SameSite = Is("lax"), Choice(SameSite::WORDS);
        /// How long a back-end that an operator drains keeps the sessions that it has, without getting new ones.
        "drain" drain: Duration = Is("0s"), KeyKind::DurationOrZero;
    }
}

words! {
    /// When a cookie is for TLS alone.
    pub enum CookieSecure {
        Auto = "auto" / "Where it was set under TLS.",
        Always = "always" / "Always.",
        Never = "never" / "Never.",
    }
}

words! {
    /// Which requests from other sites carry a cookie.
    pub enum SameSite {
        Lax = "lax" / "Those that lead there.",
        Strict = "strict" / "None.",
        None = "none" / "All, under TLS.",
    }
}

/// The name of the cookie of the pool `default`, and what those of others begin with.
const COOKIE: &str = "plimsoll";

impl StickyConfig {
    /// With a cookie, where none is named: for a pool of this name, or the pool `default`.
    pub(crate) fn named(self, pool: Option<&str>) -> Self {
        match (self.cookie.is_empty(), pool) {
            (false, _) => self,
            (true, None) => Self { cookie: COOKIE.to_owned(), ..self },
            (true, Some(pool)) => Self { cookie: format!("{COOKIE}-{pool}"), ..self },
        }
    }

    /// As a pool of this name has it that has no such table of its own.
    pub(crate) fn inherited(self, pool: &str) -> Self {
        match self.cookie.is_empty() {
            true => self.named(Some(pool)),
            false => Self { cookie: format!("{}-{pool}", self.cookie), ..self },
        }
    }

    /// The policy with sticky sessions around it. Cookies say what a session has, so nothing is remembered beside them.
    pub(crate) fn around(policy: &PolicyConfig) -> PolicyConfig {
        let spec = plimsoll_policy::sticky_around(policy.spec);
        let own = [("sticky_clients", 0u64.into())];
        let given = policy.params.iter().filter(|(name, _)| *name != "sticky_clients");
        let given = given.map(|(name, value)| (name, value.into())).chain(own);
        // The values have been checked, and 0 is one of that parameter.
        let params = ParamSet::read(spec.params, given).unwrap_or_else(|_| ParamSet::defaults(spec.params));
        PolicyConfig { spec, params, ..policy.clone() }
    }
}

/// The longest name of a cookie. With the name of a pool behind it, it is still one.
const COOKIE_MAX: usize = 192;

struct CookieName;

impl KeyForm<String> for CookieName {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        if section.found(name).is_none() {
            return Some(String::new());
        }
        reader.text(section, name, |text| {
            match !text.is_empty() && text.len() <= COOKIE_MAX && text.chars().all(is_token_char) {
                true => Ok(text.to_owned()),
                false => {
                    let what = format!("{} is no name of a cookie", quoted(text));
                    Err((what, "write e.g. \"plimsoll\"".to_owned()))
                }
            }
        })
    }

    fn show(name: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.clone()))
    }
}

struct Salt;

impl KeyForm<String> for Salt {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        if section.found(name).is_none() {
            return Some(String::new());
        }
        reader.text(section, name, |text| match text.len() {
            0 => Err((
                "is empty".to_owned(),
                "write a secret, or remove the key: then there is none".to_owned(),
            )),
            1..=256 => Ok(text.to_owned()),
            _ => Err(("is longer than 256 bytes".to_owned(), "write a shorter one".to_owned())),
        })
    }

    fn show(salt: &String) -> Option<ConfigValue> {
        (!salt.is_empty()).then(|| ConfigValue::Text(salt.clone()))
    }
}

struct MaxAge;

impl KeyForm<Option<Duration>> for MaxAge {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<Duration>> {
        reader.text(section, name, |text| match text {
            "session" => Ok(None),
            text => match value::duration(text) {
                Some(time) if (1..=86_400).contains(&time.as_secs()) => Ok(Some(time)),
                _ => {
                    let what = format!("{} is neither \"session\" nor such a time", quoted(text));
                    Err((what, "write \"session\", or a time from \"1s\" to \"24h\"".to_owned()))
                }
            },
        })
    }

    fn show(time: &Option<Duration>) -> Option<ConfigValue> {
        Some(ConfigValue::Text(time.map_or_else(|| "session".to_owned(), show_duration)))
    }
}
