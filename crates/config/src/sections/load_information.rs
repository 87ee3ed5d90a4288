//! Where policies' loads come from.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plimsoll_wire::{Key, MulticastInterface, needs_interface};

use super::handoff::KeyFile;
use crate::declare::{KeyForm, KeyValue, keys, words};
use crate::keys::Default::{Is, Words};
use crate::keys::KeyKind::{self, Choice, Integer, Text};
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::value::{ConfigValue, is_token_char, show_duration};

keys! {
    /// Where policies' loads come from. A front-end on its own needs nothing here: its own count is exact.
    ["load_information"] pub struct LoadInformationConfig {
        /// Where they come from: `own`, what this front-end has assigned and not seen completed; `poll`, agents are asked before a
        /// choice; `broadcast`, agents announce them; `header`, back-ends write them into their responses.
        "from" from: LoadSource = Is("own"), Choice(LoadSource::WORDS), restart;
        /// File with the key that front-ends and agents share: 64 hexadecimal digits, which only its owner, and at most its group,
        /// may read. Needed with `poll` and `broadcast`, and with `own` for a policy that takes host metrics from agents.
        "key_file" key: Option<Key> = Words("no key"), Text("the path of a file") => OptionalKeyFile, restart;
        /// With `poll`: how many back-ends are asked for a request, where the policy does not say itself.
        "size" size: u32 = Is("2"), Integer { min: 1, max: 8 }, restart;
        /// With `poll`: what is answered later is discarded. No request waits longer for answers.
        "timeout" timeout: Duration = Is("10ms"), KeyKind::Duration => PollTimeout, restart;
        /// With `poll`: a load that was told no longer ago is not asked for again; this front-end's own requests since are counted. So a
        /// load may be older than its request by this. `"0s"` asks for each request. At most 1s.
        "max_age" max_age: Duration = Is("1ms"), KeyKind::DurationOrZero => LoadAge, restart;
        /// How often a load is to come, with `broadcast` until an agent tells its own interval, which counts up to ten times this one, and
        /// with `header`. A back-end that was silent for three intervals counts as loaded like the others. At least 10ms.
        "interval" interval: Duration = Is("1s"), KeyKind::Duration => LoadInterval, restart;
        /// With `broadcast`: where announcements come in, and the address from which agents are asked for their boot id. With a group, its
        /// port is the group's, and several front-ends of one machine may have the same.
        "listen" listen: Option<SocketAddr> =
            Words("nowhere"), Text("IP address and port, e.g. \"0.0.0.0:7403\"") => ListenAt, restart;
        /// With `broadcast`: the multicast group that agents announce to.
        "group" group: Option<IpAddr> =
            Words("no group"), Text("a multicast address, e.g. \"239.255.74.1\"") => GroupAddress, restart;
        /// With `broadcast`: the network interface at which the group is joined, by name; for an IPv4 group, by its address as well.
        "group_interface" group_interface: Option<MulticastInterface> =
            Words("the system's choice"), Text("the name of a network interface, or its IPv4 address") => GroupInterface, restart;
        /// The highest load that is believed; with a higher one, the back-end counts as silent.
        "most_load" most_load: u32 = Is("65535"), Integer { min: 1, max: 65_535 }, restart;
        /// With `header`: the field of responses that has the load, in the forms of ORCA.
        "header" header: String = Is("endpoint-load-metrics"), Text("the name of a header field") => FieldName, restart;
        /// With `header`: which of its values is the load.
        "metric" metric: String =
            Is("named_metrics.active"), Text("a name, e.g. \"named_metrics.active\"") => MetricName, restart;
    }
}

words! {
    /// Where policies' loads come from.
    pub enum LoadSource {
        Own = "own" / "What this front-end has assigned and not seen completed.",
        Poll = "poll" / "Agents are asked before a choice.",
        Broadcast = "broadcast" / "Agents announce them.",
        Header = "header" / "Back-ends write them into their responses.",
    }
}

impl LoadInformationConfig {
    /// Reads the table, and checks that what `from` needs is there.
    pub(crate) fn read_checked<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
    ) -> Option<Self> {
        let read = Self::read(reader, section);
        if let Some(read) = &read {
            read.check_group(reader, section);
        }
        let from = section.found("from").and_then(|found| found.value.as_str()).unwrap_or("own");
        check_keys(reader, section, from);
        let mut needs = |name: &str, remedy: &str| {
            if section.found(name).is_none() {
                let wrong = ("missing".to_owned(), remedy.to_owned());
                reader.wrong(&section.key(name), section.span.clone(), wrong);
            }
        };
        if matches!(from, "poll" | "broadcast") {
            needs("key_file", "name the file of the key that agents have, e.g. `key_file = \"load.key\"`");
        }
        if from == "broadcast" {
            needs("listen", "say where announcements come in, e.g. `listen = \"0.0.0.0:7403\"`");
        }
        read
    }
}

impl LoadInformationConfig {
    /// Group, interface and address to listen at have to go together.
    fn check_group<'a>(&self, reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>) {
        let mut wrong = |name: &str, what: &str, remedy: &str| {
            let span = section.found(name).map_or_else(|| section.span.clone(), |found| found.span);
            reader.wrong(&section.key(name), span, (what.to_owned(), remedy.to_owned()));
        };
        let Some(group) = self.group else {
            if self.group_interface.is_some() {
                wrong("group_interface", "is the interface of no group", "remove it, or name the `group`");
            }
            return;
        };
        match &self.group_interface {
            Some(MulticastInterface::Address(_)) if group.is_ipv6() => {
                wrong(
                    "group_interface",
                    "cannot be an address for an IPv6 group",
                    "write the name of an interface, e.g. \"eth0\"",
                );
            }
            None if needs_interface(group) => {
                wrong(
                    "group_interface",
                    "has to say in which network this group is",
                    "write the name of an interface, e.g. \"eth0\"",
                );
            }
            _ => {}
        }
        match self.listen {
            Some(listen) if listen.is_ipv4() != group.is_ipv4() => {
                let remedy =
                    if group.is_ipv6() { "write e.g. \"[::]:7403\"" } else { "write e.g. \"0.0.0.0:7403\"" };
                wrong("listen", "is of another family than the group", remedy);
            }
            Some(listen) if listen.port() == 0 => {
                wrong(
                    "listen",
                    "leaves the port of the group open",
                    "write the port that agents announce to",
                );
            }
            _ => {}
        }
    }
}

/// Keys that are for other sources are mistakes, unless they say what holds without them.
fn check_keys<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, from: &str) {
    if !LoadSource::WORDS.contains(&from) {
        return;
    }
    for (name, sources) in KEYS {
        let Some(found) = section.found(name) else { continue };
        let words: Vec<String> = sources.iter().map(ToString::to_string).collect();
        if words.iter().any(|word| word == from) || found.is_default() {
            continue;
        }
        let forms: Vec<String> = words.iter().map(|word| format!("`from = \"{word}\"`")).collect();
        let what = format!("is not used with `from = \"{from}\"`");
        reader.wrong(
            &section.key(name),
            found.span,
            (what, format!("remove it, or write {}", forms.join(" or "))),
        );
    }
}

/// The sources with which a key is used.
const KEYS: &[(&str, &[LoadSource])] = {
    use LoadSource::{Broadcast, Header, Own, Poll};
    &[
        ("key_file", &[Own, Poll, Broadcast]),
        ("size", &[Poll]),
        ("timeout", &[Poll]),
        ("max_age", &[Poll]),
        ("interval", &[Broadcast, Header]),
        ("listen", &[Broadcast]),
        ("group", &[Broadcast]),
        ("group_interface", &[Broadcast]),
        ("most_load", &[Poll, Broadcast, Header]),
        ("header", &[Header]),
        ("metric", &[Header]),
    ]
};

/// The key in a file, where one is named.
struct OptionalKeyFile;

impl KeyForm<Option<Key>> for OptionalKeyFile {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<Key>> {
        match section.found(name) {
            Some(_) => KeyFile::read(reader, section, name).map(Some),
            None => Some(None),
        }
    }

    fn show(key: &Option<Key>) -> Option<ConfigValue> {
        key.as_ref().map(|_| ConfigValue::Secret)
    }
}

/// A duration within bounds.
fn bounded<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    name: &str,
    (least, most): (Duration, Duration),
) -> Option<Duration> {
    let span = reader.duration(section, name);
    if !(least..=most).contains(&span) {
        let what = if span < least { "is too short" } else { "is too long" };
        let remedy = format!("write {:?} to {:?}", show_duration(least), show_duration(most));
        reader.wrong(&section.key(name), section.span_of(name), (what.to_owned(), remedy));
    }
    Some(span)
}

/// 1 ms to 1 s.
struct PollTimeout;

impl KeyForm<Duration> for PollTimeout {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        bounded(reader, section, name, (Duration::from_millis(1), Duration::from_secs(1)))
    }

    fn show(span: &Duration) -> Option<ConfigValue> {
        Some(ConfigValue::Text(show_duration(*span)))
    }
}

/// 0 to 1 s.
struct LoadAge;

impl KeyForm<Duration> for LoadAge {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        bounded(reader, section, name, (Duration::ZERO, Duration::from_secs(1)))
    }

    fn show(span: &Duration) -> Option<ConfigValue> {
        PollTimeout::show(span)
    }
}

/// 10 ms to 1 h.
struct LoadInterval;

impl KeyForm<Duration> for LoadInterval {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Duration> {
        bounded(reader, section, name, (Duration::from_millis(10), Duration::from_secs(3600)))
    }

    fn show(span: &Duration) -> Option<ConfigValue> {
        PollTimeout::show(span)
    }
}

/// Reads a value where there is one.
fn optional<'a, T>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    name: &str,
    read: impl Fn(&str) -> Result<T, Wrong>,
) -> Option<Option<T>> {
    Some(section.found(name).and_then(|_| reader.text(section, name, read)))
}

/// An address to listen at.
struct ListenAt;

impl KeyForm<Option<SocketAddr>> for ListenAt {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<SocketAddr>> {
        optional(reader, section, name, |text| {
            let at = crate::address::socket(text)?;
            match at.ip().is_multicast() {
                true => Err((
                    format!("{} is a group", quoted(text)),
                    "name it as `group`, and listen at an address of this machine, e.g. \"0.0.0.0:7403\""
                        .to_owned(),
                )),
                false => Ok(at),
            }
        })
    }

    fn show(at: &Option<SocketAddr>) -> Option<ConfigValue> {
        at.and_then(|at| at.show(Text("")))
    }
}

fn ip(text: &str, good: impl Fn(&IpAddr) -> bool, remedy: &str) -> Result<IpAddr, Wrong> {
    let wrong = || (format!("{} is no such address", quoted(text)), remedy.to_owned());
    text.parse().ok().filter(good).ok_or_else(wrong)
}

/// A multicast address.
struct GroupAddress;

impl KeyForm<Option<IpAddr>> for GroupAddress {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<IpAddr>> {
        let remedy = "write a multicast address, e.g. \"239.255.74.1\" or \"ff05::7401\"";
        optional(reader, section, name, |text| ip(text, IpAddr::is_multicast, remedy))
    }

    fn show(group: &Option<IpAddr>) -> Option<ConfigValue> {
        group.map(|group| ConfigValue::Text(group.to_string()))
    }
}

/// A network interface of this machine.
struct GroupInterface;

impl KeyForm<Option<MulticastInterface>> for GroupInterface {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<MulticastInterface>> {
        let remedy =
            "write the name of a network interface, or its IPv4 address, e.g. \"eth0\" or \"10.0.0.11\"";
        optional(reader, section, name, |text| {
            text.parse().map_err(|_| (format!("{} is no network interface", quoted(text)), remedy.to_owned()))
        })
    }

    fn show(interface: &Option<MulticastInterface>) -> Option<ConfigValue> {
        interface.as_ref().map(|interface| ConfigValue::Text(interface.to_string()))
    }
}

fn word(text: &str, good: impl Fn(char) -> bool, remedy: &str) -> Result<String, Wrong> {
    if text.is_empty() || text.len() > 128 || !text.chars().all(good) {
        return Err((format!("{} cannot be that", quoted(text)), remedy.to_owned()));
    }
    Ok(text.to_owned())
}

/// The name of a header field, in small letters.
struct FieldName;

impl KeyForm<String> for FieldName {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        let remedy = "write the name of a header field, e.g. \"endpoint-load-metrics\"";
        reader
            .text(section, name, |text| word(text, is_token_char, remedy))
            .map(|text| text.to_ascii_lowercase())
    }

    fn show(name: &String) -> Option<ConfigValue> {
        Some(ConfigValue::Text(name.clone()))
    }
}

/// The name of a metric.
struct MetricName;

impl KeyForm<String> for MetricName {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<String> {
        let good = |c: char| c.is_ascii_graphic() && !"=,:\"".contains(c);
        reader.text(section, name, |text| word(text, good, "write a name, e.g. \"named_metrics.active\""))
    }

    fn show(name: &String) -> Option<ConfigValue> {
        FieldName::show(name)
    }
}
