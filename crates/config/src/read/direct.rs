//! Reads `[direct]` and checks what else is configured against it.

use toml::de::DeTable;

use crate::read::peers::PlacedListener;
use crate::read::tables::one;
use crate::reader::ConfigReader;
use crate::sections::{
    DirectConfig, ListenerProtocol, LoadInformationConfig, LoadSource, MechanismKind, PolicyConfig,
    ShadowConfig,
};

/// What else is configured.
pub(super) struct ChosenSections<'a> {
    pub(super) mechanism: MechanismKind,
    pub(super) listeners: &'a [PlacedListener],
    /// The live policy, and the one beside it.
    pub(super) policies: (Option<&'a PolicyConfig>, Option<&'a ShadowConfig>),
}

/// The table `[direct]`; `None` inside with another mechanism.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    chosen: &ChosenSections<'_>,
    loads: Option<&LoadInformationConfig>,
) -> Option<Option<DirectConfig>> {
    check_protocols(reader, chosen.listeners, chosen.mechanism);
    check_vlans(reader, root, chosen.mechanism);
    let section = one(reader, root, "direct")?;
    let is_direct = chosen.mechanism == MechanismKind::Direct;
    if section.table.is_none() && !is_direct {
        return Some(None);
    }
    let direct = DirectConfig::read(reader, &section);
    if is_direct {
        check(reader, root, chosen, loads);
    }
    Some(direct.filter(|_| is_direct))
}

/// Datagrams are distributed at layer 4 alone.
fn check_protocols(reader: &mut ConfigReader<'_>, listeners: &[PlacedListener], mechanism: MechanismKind) {
    if mechanism == MechanismKind::Direct {
        return;
    }
    for listener in listeners.iter().filter(|l| l.protocol == ListenerProtocol::Udp) {
        let what = format!("`mechanism = \"{mechanism}\"` serves no datagrams");
        let remedy = "write `mechanism = \"direct\"`, or `protocol = \"tcp\"`".to_owned();
        let span = listener.protocol_span.clone();
        reader.wrong(&format!("{}.protocol", listener.path), span, (what, remedy));
    }
}

/// Other mechanisms send by the kernel, which alone knows the VLANs of its interfaces.
fn check_vlans<'a>(reader: &mut ConfigReader<'a>, root: &'a DeTable<'a>, mechanism: MechanismKind) {
    if mechanism == MechanismKind::Direct {
        return;
    }
    let backends = root.get("backend").and_then(|found| found.get_ref().as_array()).into_iter().flatten();
    for (index, backend) in backends.enumerate() {
        let Some(vlan) = backend.get_ref().as_table().and_then(|table| table.get("vlan")) else { continue };
        let what = format!("has no effect with `mechanism = \"{mechanism}\"`");
        let remedy =
            "remove it, and give the back-end's address a route by an interface of that VLAN; or write \
                      `mechanism = \"direct\"`"
                .to_owned();
        reader.wrong(&format!("backend[{index}].vlan"), vlan.span(), (what, remedy));
    }
}

/// Checks that what else is configured can be done at layer 4.
fn check<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    &ChosenSections { listeners, policies: policy, .. }: &ChosenSections<'_>,
    loads: Option<&LoadInformationConfig>,
) {
    for listener in listeners {
        let address = listener.address;
        if address.ip().is_unspecified() || address.port() == 0 {
            let what = format!("{address} is no address that back-ends could answer from");
            let remedy =
                "name the one address and port that clients connect to; with `mechanism = \"direct\"` the back-ends have \
                 it as well"
                    .to_owned();
            reader.wrong(&format!("{}.address", listener.path), listener.span.clone(), (what, remedy));
        }
    }
    for (key, policy) in [("policy.name", policy.0), ("shadow.policy", policy.1.map(|shadow| &shadow.policy))]
    {
        let Some(policy) = policy else { continue };
        if let Some(needed) = policy.spec.capabilities.content_needed() {
            let what = format!(
                "`{}` cannot run at layer 4: it decides by {needed}, and there a back-end is chosen for a connection before its \
                 requests are known",
                policy.spec.name
            );
            let remedy = "name one that does without, e.g. \"least_connections\" (`plimsoll policies --json` tells what \
                          each needs as `needs_content`), or another mechanism"
                .to_owned();
            reader.wrong(key, span_of(root, key), (what, remedy));
        }
    }
    if let Some(loads) = loads
        && matches!(loads.from, LoadSource::Poll | LoadSource::Header)
    {
        let what =
            "there is nobody to wait for answers of back-ends, and responses pass by the switch".to_owned();
        let remedy = "write `from = \"own\"` or `\"broadcast\"`".to_owned();
        reader.wrong("load_information.from", span_of(root, "load_information.from"), (what, remedy));
    }
    for (table, what) in [
        ("access_log", "would stay empty: answers go from back-ends to clients"),
        ("tls", "has no effect: packets are passed on as they are"),
    ] {
        if root.get(table).is_some() {
            let remedy = format!("remove [{table}], or choose another mechanism");
            let what = format!("{what}, with `mechanism = \"direct\"`");
            reader.wrong(table, span_of(root, table), (what, remedy));
        }
    }
    for table in ["partitions", "peers"] {
        if root.get(table).is_some() {
            let what = "needs to know requests, which a switch at layer 4 does not".to_owned();
            let remedy = format!("remove [{table}], or choose another mechanism");
            reader.wrong(table, span_of(root, table), (what, remedy));
        }
    }
}

/// Where a key stands, or else its table, or else the beginning.
fn span_of(root: &DeTable<'_>, key: &str) -> std::ops::Range<usize> {
    let (table, name) = key.split_once('.').unwrap_or((key, ""));
    let Some(found) = root.get(table) else { return 0..0 };
    let inner = found.get_ref().as_table().and_then(|inner| inner.get(name));
    inner.map_or_else(|| found.span(), toml::Spanned::span)
}
