//! The filters that an interface has, as anybody may list them.

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcFilterBpfOption, TcHandle, TcMessage, TcOption};

use crate::error::{DatapathError, NET_ADMIN};
use crate::netlink::request;

/// A filter of the clsact qdisc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterfaceFilter {
    pub(crate) is_ingress: bool,
    pub(crate) priority: u32,
    pub(crate) handle: u32,
    /// The program's name, with its number; empty for a filter that is no program.
    pub(crate) name: String,
    /// The number of the program; 0 for a filter that is none.
    pub(crate) program: u32,
}

/// The filters of the clsact qdisc of an interface; `None` where it has none.
pub(crate) fn filters_at(ifindex: u32) -> Result<Option<Vec<InterfaceFilter>>, DatapathError> {
    if !has_clsact(ifindex) {
        return Ok(None);
    }
    let mut filters = Vec::new();
    for is_ingress in [true, false] {
        let minor = if is_ingress { TcHandle::MIN_INGRESS } else { TcHandle::MIN_EGRESS };
        let mut message = TcMessage::with_index(ifindex.cast_signed());
        message.header.parent = TcHandle { major: TcHandle::CLSACT.major, minor };
        let answers =
            request(RouteNetlinkMessage::GetTrafficFilter(message), NLM_F_DUMP).map_err(|error| {
                DatapathError::of("cannot list the filters of an interface", NET_ADMIN, error)
            })?;
        filters.extend(answers.iter().filter_map(|answer| filter_of(answer, is_ingress)));
    }
    Ok(Some(filters))
}

/// Of a dump; each priority also has an entry with handle 0, for no filter.
fn filter_of(answer: &RouteNetlinkMessage, is_ingress: bool) -> Option<InterfaceFilter> {
    let RouteNetlinkMessage::NewTrafficFilter(message) = answer else { return None };
    let handle = u32::from(message.header.handle);
    if handle == 0 {
        return None;
    }
    let options = message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    let (mut name, mut program) = (String::new(), 0);
    for option in options.into_iter().flatten() {
        match option {
            TcOption::Bpf(TcFilterBpfOption::ProgName(found)) => name.clone_from(found),
            TcOption::Bpf(TcFilterBpfOption::ProgId(found)) => program = *found,
            _ => {}
        }
    }
    Some(InterfaceFilter { is_ingress, priority: message.header.info >> 16, handle, name, program })
}

/// The kernel lists the qdiscs of all interfaces. Where one of them cannot be read, this one counts as there: it then stays.
fn has_clsact(ifindex: u32) -> bool {
    let message = TcMessage::with_index(ifindex.cast_signed());
    let Ok(answers) = request(RouteNetlinkMessage::GetQueueDiscipline(message), NLM_F_DUMP) else {
        return true;
    };
    let is_clsact = |answer: &RouteNetlinkMessage| match answer {
        RouteNetlinkMessage::NewQueueDiscipline(found) => {
            found.header.index == ifindex.cast_signed()
                && found.attributes.iter().any(|a| matches!(a, TcAttribute::Kind(kind) if kind == "clsact"))
        }
        _ => false,
    };
    answers.iter().any(is_clsact)
}
