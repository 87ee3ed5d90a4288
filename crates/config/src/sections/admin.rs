//! The admin API.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;

use crate::address::socket;
use crate::declare::Entries;
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{Flag, Text};
use crate::keys::{SectionSpec, fixed, key};
use crate::path::path;
use crate::reader::{ConfigReader, DeclaredTable, Wrong};
use crate::value::ConfigValue;

const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;

/// The admin API.
#[derive(Clone)]
pub struct Admin {
    /// Where it listens.
    pub address: SocketAddr,
    /// Bearer token that every request must carry; always there when `address` is not loopback.
    pub token: Option<String>,
    /// The configuration says nothing of it: whoever has its default address may keep it.
    pub is_unasked: bool,
}

/// Whether it was asked for makes no difference to what it is.
impl PartialEq for Admin {
    fn eq(&self, other: &Self) -> bool {
        (self.address, &self.token) == (other.address, &other.token)
    }
}

impl Eq for Admin {}

/// Does not show the token.
impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "(hidden)");
        f.debug_struct("Admin").field("address", &self.address).field("token", &token).finish()
    }
}

impl Admin {
    pub(crate) const SECTION: SectionSpec = SectionSpec {
        name: "admin",
        many: false,
        policy_key: None,
        help: "The admin API.",
        group: &[],
        keys: &[
            fixed("enabled", Flag, Is("true"), "Whether there is one."),
            fixed(
                "address",
                Text("IP address and port, e.g. \"127.0.0.1:9090\""),
                Is("127.0.0.1:9090"),
                "Where it listens; without a token, on a loopback address only.",
            ),
            key(
                "token",
                Text("16 to 4096 letters, digits and `-._~+/=`"),
                Words("no token"),
                "Bearer token that every request must carry.",
            ),
            key(
                "token_file",
                Text("the path of a file"),
                Words("no file"),
                "File that holds the token, read when the configuration is; instead of `token`.",
            ),
        ],
    };

    /// The admin API; there is one unless it is switched off.
    pub(crate) fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) -> Option<Self> {
        let enabled = reader.flag(section, "enabled");
        let address = reader.text(section, "address", socket);
        let before = reader.errors.len();
        let inline = reader.text(section, "token", |text| token(text).map(str::to_owned));
        let file = reader.text(section, "token_file", |text| path(text).map(str::to_owned));
        if section.found("token").is_some() && section.found("token_file").is_some() {
            let wrong = ("stands beside `token`".to_owned(), "keep one of the two".to_owned());
            reader.wrong(&section.key("token_file"), section.span_of("token_file"), wrong);
        }
        let from_file = file.and_then(|name| {
            let read = read_token(&reader.file(&name));
            let wrong = read.map_err(|(what, remedy)| (format!("the file {what}"), remedy));
            wrong.map_err(|w| reader.wrong(&section.key("token_file"), section.span_of("token_file"), w)).ok()
        });
        let address = address?;
        let token = inline.or(from_file);
        if enabled
            && token.is_none()
            && reader.errors.len() == before
            && !address.ip().to_canonical().is_loopback()
        {
            let what = format!("{} is not loopback and there is no token", address.ip());
            let remedy = "write `token_file = \"FILE\"`, or listen on 127.0.0.1 or ::1".to_owned();
            reader.wrong(&section.key("address"), section.span_of("address"), (what, remedy));
        }
        let is_unasked = Self::SECTION.keys.iter().all(|key| section.found(key.name).is_none());
        enabled.then_some(Self { address, token, is_unasked })
    }

    /// The keys with their values.
    pub(crate) fn entries(admin: Option<&Self>) -> Entries {
        let Some(admin) = admin else { return vec![("enabled", ConfigValue::Flag(false))] };
        let mut out = vec![
            ("enabled", ConfigValue::Flag(true)),
            ("address", ConfigValue::Text(admin.address.to_string())),
        ];
        out.extend(admin.token.iter().map(|_| ("token", ConfigValue::Secret)));
        out
    }
}

/// Checks a token without repeating it in a message.
fn token(text: &str) -> Result<&str, Wrong> {
    // The characters of RFC 6750, section 2.1.
    let good = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let remedy =
        || "write 16 to 4096 letters, digits and `-._~+/=`, e.g. from `openssl rand -hex 16`".to_owned();
    if !TOKEN_BYTES.contains(&text.len()) {
        return Err((format!("has {} characters", text.chars().count()), remedy()));
    }
    if !text.chars().all(good) {
        return Err(("holds characters that a token cannot have".to_owned(), remedy()));
    }
    Ok(text)
}

/// Reads the token of an admin API from a file.
///
/// # Errors
/// What is wrong with the file or the token, and what would be right.
pub fn admin_token(path: &Path) -> Result<String, String> {
    read_token(path).map_err(|(what, remedy)| format!("{what}: {remedy}"))
}

fn read_token(path: &Path) -> Result<String, Wrong> {
    let unreadable = |why: String| {
        let remedy = "make it a file that holds the token alone and that this user may read".to_owned();
        (format!("{} {why}", path.display()), remedy)
    };
    // Reading something other than a regular file could block for ever.
    let regular = std::fs::metadata(path).map_err(|e| unreadable(format!("cannot be read: {e}")))?.is_file();
    if !regular {
        return Err(unreadable("is no regular file".to_owned()));
    }
    let mut text = String::new();
    let most = *TOKEN_BYTES.end() as u64 + 3;
    std::fs::File::open(path)
        .and_then(|f| f.take(most).read_to_string(&mut text))
        .map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    token(text.trim())
        .map(str::to_owned)
        .map_err(|(what, remedy)| (format!("{}: token {what}", path.display()), remedy))
}
