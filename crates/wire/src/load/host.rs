//! What is measured at a back-end's machine, asked for and told as loads are.
//!
//! An inquiry and its answer differ from those for loads by their kind alone, and so by the key of their code.

use super::answerer::LoadAnswerer;
use super::counts::LoadRefusal;
use super::datagram::{Datagram, DatagramFields, DatagramKind};
use super::inquirer::LoadInquirer;

/// The host metrics of a back-end. What is more than 65,535 is told as that.
///
/// Source: Hyun et al., "Content sniffer based load distribution in a web server cluster", section 4.1: M_h1 to M_h4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostFigures {
    /// Connections that wait to be accepted.
    pub pending: u16,
    /// Processes that wait for the disk.
    pub at_disk: u16,
    /// Requests for stored documents that are being answered.
    pub serving_static: u16,
    /// Requests whose answers are being computed.
    pub serving_dynamic: u16,
}

impl HostFigures {
    fn packed(self) -> (u32, u32) {
        let pair = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
        (pair(self.pending, self.at_disk), pair(self.serving_static, self.serving_dynamic))
    }

    fn unpacked(first: u32, second: u32) -> Self {
        let low = |pair: u32| (pair & 0xffff) as u16;
        let high = |pair: u32| (pair >> 16) as u16;
        Self {
            pending: low(first),
            at_disk: high(first),
            serving_static: low(second),
            serving_dynamic: high(second),
        }
    }
}

/// Whether a datagram is for [`LoadAnswerer::answer_host`] and not for [`LoadAnswerer::answer`].
#[must_use]
pub fn asks_for_host(datagram: &[u8]) -> bool {
    datagram.get(3) == Some(&(DatagramKind::HostInquiry as u8))
}

/// What an answer to [`LoadInquirer::ask_host`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostTaken {
    /// The metrics.
    Figures {
        /// The agent that was asked.
        peer: usize,
        /// Of the inquiry.
        sequence: u64,
        /// What was measured.
        figures: HostFigures,
    },
    /// The agent did not know us or we not it; now we do, and it can be asked again.
    Renewed {
        /// The agent that was asked.
        peer: usize,
        /// Of the inquiry.
        sequence: u64,
    },
}

impl LoadAnswerer {
    /// The answer to a datagram for which [`asks_for_host`] holds, if it gets one.
    pub fn answer_host(
        &mut self,
        source: std::net::IpAddr,
        datagram: &[u8],
        now_ns: u64,
        figures: impl FnOnce() -> HostFigures,
    ) -> Option<Datagram> {
        let kinds = (DatagramKind::HostInquiry, DatagramKind::HostReply);
        self.answer_as(kinds, source, datagram, now_ns, || figures().packed())
    }
}

impl LoadInquirer {
    /// As [`Self::ask`], for the metrics of the agent's machine.
    pub fn ask_host(&mut self, peer: usize, now_ns: u64) -> Option<(u64, Datagram)> {
        self.ask_as(DatagramKind::HostInquiry, peer, now_ns)
    }

    /// Takes a datagram that came in, where only [`Self::ask_host`] asks.
    ///
    /// # Errors
    /// Why it is dropped; it is counted.
    pub fn take_host(&mut self, datagram: &[u8], now_ns: u64) -> Result<HostTaken, LoadRefusal> {
        let taken = self.heard(datagram, DatagramKind::HostReply, now_ns).map(|(asked, sequence, fields)| {
            let peer = asked.peer;
            match fields {
                None => HostTaken::Renewed { peer, sequence },
                Some(DatagramFields { first, second, .. }) => {
                    HostTaken::Figures { peer, sequence, figures: HostFigures::unpacked(first, second) }
                }
            }
        });
        match taken {
            Ok(HostTaken::Figures { .. }) => self.counters_ref().take(),
            Ok(HostTaken::Renewed { .. }) => self.counters_ref().renew(),
            Err(why) => self.counters_ref().refuse(why),
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::load::{AnswerLimits, BootId, InquiryLimits, LoadKeys};

    fn both() -> (LoadInquirer, LoadAnswerer) {
        let keys = LoadKeys::new(&Key::new([7; 32]));
        let inquirer = LoadInquirer::new(keys.clone(), [1; 8], InquiryLimits::default());
        (inquirer, LoadAnswerer::new(keys, BootId::new([2; 8]), AnswerLimits::default(), 3))
    }

    #[test]
    fn metrics_are_asked_for_and_told() {
        let (mut inquirer, mut answerer) = both();
        let figures = HostFigures { pending: 1, at_disk: 65_535, serving_static: 3, serving_dynamic: 4 };
        let source = [10, 0, 0, 1].into();
        let mut ask = |now_ns: u64| {
            let (_, inquiry) = inquirer.ask_host(5, now_ns).unwrap();
            assert!(asks_for_host(&inquiry));
            let reply = answerer.answer_host(source, &inquiry, now_ns + 1, || figures).unwrap();
            // The same again is refused on both sides.
            assert!(answerer.answer_host(source, &inquiry, now_ns + 1, || figures).is_none());
            let taken = inquirer.take_host(&reply, now_ns + 2).unwrap();
            assert_eq!(inquirer.take_host(&reply, now_ns + 2), Err(LoadRefusal::Late));
            taken
        };
        assert_eq!(ask(1_000), HostTaken::Renewed { peer: 5, sequence: 1 });
        assert_eq!(ask(2_000), HostTaken::Figures { peer: 5, sequence: 2, figures });
    }

    #[test]
    fn neither_is_taken_for_the_other() {
        let (mut inquirer, mut answerer) = both();
        let source = [10, 0, 0, 1].into();
        let (_, load) = inquirer.ask(5, 1_000).unwrap();
        let (_, host) = inquirer.ask_host(5, 1_000).unwrap();
        assert!(!asks_for_host(&load) && !asks_for_host(&[]));
        assert!(answerer.answer_host(source, &load, 1_000, HostFigures::default).is_none());
        assert!(answerer.answer(source, &host, 1_000, || (0, 0)).is_none());
        // Another kind in a datagram whose code is right for its own.
        let mut forged = host;
        forged[3] = DatagramKind::Inquiry as u8;
        assert!(answerer.answer(source, &forged, 1_000, || (0, 0)).is_none());
        // An answer of the other kind to an inquiry is none.
        let renewal = answerer.answer_host(source, &host, 1_000, HostFigures::default).unwrap();
        inquirer.take_host(&renewal, 1_000).unwrap();
        let (_, host) = inquirer.ask_host(5, 2_000).unwrap();
        let reply = answerer.answer_host(source, &host, 2_000, HostFigures::default).unwrap();
        assert_eq!(inquirer.take(&reply, 2_000), Err(LoadRefusal::Form));
        assert!(inquirer.take_host(&reply, 2_000).is_ok());
    }
}
